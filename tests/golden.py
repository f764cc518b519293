"""Small scenarios of every kind, and the numbers, names and random words that they gave when they were recorded.

`python tests/golden.py` compares with `tests/golden.json` to the bit, which holds on the kind of processor that
recorded it; `--write` records. `tests/test_golden.py` compares what must be equal on any machine.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import simulate
import theory
from statmech import load
from statmech.kinds.selection_and_vocabulary import scenario_from

RECORD = Path(__file__).with_name("golden.json")
FIRST = 6  # values of each variable that are recorded beside its digest

RULES = ["hebb", "perceptron", "adatron", "adatron_textbook"]
GIVEN = {
    "online": {"rule": RULES, "K": [1, 3], "N": 50, "t": [0, 0.5, 1], "seeds": 6},
    "online_gram": {
        "rule": "perceptron",
        "K": 3,
        "N": [20, 40],
        "t": [0, 1],
        "seeds": 3,
        "gram": True,
        "eta": [0.5, 1],
    },
    "online_vectors": {"rule": RULES, "K": 2, "N": 30, "t": [0, 1], "seeds": 3, "engine": "vectors", "flip": [0, 0.1]},
    "online_inputs": {
        "rule": ["hebb", "perceptron"],
        "N": 16,
        "t": [1],
        "seeds": 2,
        "inputs": ["gaussian", "rademacher", "sphere", {"anisotropic": {"spectrum": [0.5, 1.5]}}],
    },
    "online_float32": {"rule": "perceptron", "K": 2, "N": 100, "t": [0, 1], "seeds": 2, "dtype": "float32"},
    "online_start": {
        "rule": ["perceptron", "adatron"],
        "K": 2,
        "N": 40,
        "t": [0, 2],
        "seeds": 2,
        "margin": 0.5,
        "start": {"length": [0.5, 1.5], "R": [0.2, 0.1], "q": 0.3},
    },
    "risk": {
        "loss": ["square", "logistic", "hinge", "squared_hinge", "exponential", "huber", "absolute"],
        "N": 12,
        "alpha": [0.5, 2],
        "lam": [0.1, 1],
        "flip": [0, 0.1],
        "seeds": 3,
    },
    "risk_linear": {
        "loss": ["square", "huber"],
        "penalty": ["l2", "l1", "elastic_net"],
        "teacher": "linear",
        "noise": 0.5,
        "N": 12,
        "alpha": [0.5, 2],
        "lam": 0.1,
        "weights": "sparse",
        "seeds": 3,
    },
    "risk_structured": {
        "loss": ["square", "logistic", "hinge"],
        "N": 12,
        "alpha": [0.5, 2],
        "lam": 0.1,
        "flip": 0.1,
        "inputs": [
            {"spectrum": [0.2, 1.8], "teacher": [0.9, 0.1], "misfit": 0.2},
            {"power_law": {"decay": 1.5, "teacher_decay": 1.75}},
            {"features": {"activation": "erf", "latent": 0.5}},
        ],
        "seeds": 3,
    },
    "clusters": {
        "clusters": "gaussian",
        "loss": ["square", "logistic", "hinge"],
        "inputs": ["gaussian", {"spectrum": [0.3, 2.4], "shares": [0.5, 0.5], "teacher": [0.25, 0.75]}],
        "positives": [0.3, 0.5],
        "N": 12,
        "alpha": [0.5, 2],
        "lam": 0.1,
        "intercept": True,
        "seeds": 3,
    },
    "online_groups": {
        "rule": RULES,
        "K": [1, 3],
        "N": 100,
        "t": [0, 0.5, 1],
        "flip": 0.1,
        "inputs": {"spectrum": [0.2, 1.8], "teacher": [0.9, 0.1]},
        "seeds": 3,
    },
    "inference": {
        "prior": ["gauss", "binary", "sparse"],
        "N": 30,
        "alpha": [1, 2],
        "start": ["uninformed", "informed"],
        "steps": 6,
        "seeds": 3,
    },
    "online_tasks": {
        "rule": RULES,
        "tasks": 3,
        "overlap": [0, 0.5],
        "protocol": ["interleaved", {"blocks": [0, 0.5, 1]}],
        "N": 40,
        "batch": [1, 3],
        "flip": 0.1,
        "t": [0, 1, 2],
        "seeds": 3,
    },
    "online_network_tasks": {
        "network": "erf",
        "tasks": 2,
        "overlap": [0, 0.5],
        "protocol": ["blocked", {"replay": 0.3}],
        "switch": 1,
        "K": 2,
        "N": 40,
        "batch": [1, 3],
        "eta_v": 0.5,
        "noise": 0.1,
        "t": [0, 1, 2],
        "seeds": 3,
    },
    "online_zip": {"rule": "hebb", "t": [1], "seeds": 2, "zip": [{"K": [1, 2], "N": [10, 20]}], "key": 7},
    "stored": {
        "learner": ["hebb", "perceptron", "minover", "adatron", "pseudo_inverse", "max_stability", "gibbs", "bayes"],
        "N": 12,
        "alpha": [0.5, 2],
        "epochs": [1, 5],
        "seeds": 3,
        "sweeps": 40,
        "votes": 5,
        "strengths": True,
    },
    "stored_stops": {
        "learner": "minover",
        "N": [10, 20],
        "alpha": 2,
        "stop": ["epochs", "stability-patience", "field-patience"],
        "flip": [0, 0.2],
        "updates": [3, 50],
        "seeds": 3,
        "within": 0.1,
    },
    "stopping": {
        "boundary": ["constant", "brownian-bridge", "as-printed", "centred"],
        "N": [16, 40],
        "chunk": [1, 4],
        "mean": [0, 1],
        "error_rate": [0.01, 0.2],
        "walks": 40,
        "seeds": 2,
    },
    "attention": {
        "attention": ["constant", "brownian-bridge", "as-printed", "centred"],
        "error_rate": [0.1, 0.01],
        "N": 24,
        "chunk": 4,
        "t": [0.25, 0.5],
        "seeds": 2,
    },
    "boosting": {"booster": "adaboost", "N": 6, "s": [1, 3], "P": [20, 40], "tests": 100, "seeds": 2, "k": [1, 2]},
    "boundaries": ["boundaries", "folds=2", "data=clouds,moons"],
    "study": [
        "boundaries",
        "folds=2",
        "data=clouds,moons",
        "classifier=boosting,tree,perceptron,averaged,voted,attentive",
    ],
}


def scenarios():
    """Every recorded scenario by name."""
    return {name: load(it[0], it[1:]) if isinstance(it, list) else scenario_from(it) for name, it in GIVEN.items()}


def words(scenario):
    """The words of each cell, which name its random numbers."""
    return [list(map(int, cell.identity_hash())) for cell in scenario.cells() if hasattr(cell, "identity_hash")]


def described(dataset):
    """Dimensions, type, digest of the bits and first values of each variable and coordinate."""
    made = {}
    for name in sorted(map(str, dataset.variables)):
        values = np.asarray(dataset[name].values)
        numbers = values.dtype.kind in "fiub"
        content = np.ascontiguousarray(values).tobytes() if numbers else json.dumps(values.tolist()).encode()
        made[name] = {
            "dims": list(map(str, dataset[name].dims)),
            "dtype": str(values.dtype) if numbers else "text",
            "digest": hashlib.sha256(content).hexdigest(),
            "first": values.ravel()[:FIRST].astype(float).tolist() if numbers else values.ravel()[:FIRST].tolist(),
        }
    return made


def record(name, scenario):
    """All that is recorded of a scenario."""
    return {
        "config": {name: value for name, value in scenario.config().items() if name != "figure"},  # which is only drawn
        "words": words(scenario),
        "simulation": described(simulate.run(scenario)),
        "theory": None if scenario.unsolved else described(theory.solve(scenario)),
    }


def recorded():
    """Return the records by the names of their scenarios."""
    return json.loads(RECORD.read_text())


def differences(before, after, at=""):
    """Where two records differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            one
            for name in sorted({*before, *after})
            for one in differences(before.get(name), after.get(name), f"{at}/{name}")
        ]
    return [] if json.dumps(before) == json.dumps(after) else [f"{at}: {str(before)[:80]} is now {str(after)[:80]}"]


def main():
    made = {name: record(name, scenario) for name, scenario in scenarios().items()}
    if "--write" in sys.argv:
        RECORD.write_text(json.dumps(made, indent=1) + "\n")
        return
    found = differences(recorded(), json.loads(json.dumps(made)))
    print("\n".join(found) or f"{len(made)} scenarios: every bit, name and word is as recorded")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
