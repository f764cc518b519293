"""Published figures of classifiers on real data: boosting, attention, stopping and cross-validation."""
