"""A small sweep of every kind of scenario: conformance tests range over the registry, so that no kind is forgotten.

Each has the name of its kind (`statmech.keys.scenario.get_kinds`).
"""

from __future__ import annotations

import pytest

from statmech import (
    Boosting,
    Clusters,
    Descent,
    FixedLengthNetwork,
    Generations,
    Inference,
    LabelledRows,
    MovingTeacher,
    Network,
    NetworkTasks,
    OnlineClusters,
    OnlineRows,
    OnlineTasks,
    Risk,
    Scenario,
    StoredExamples,
    load,
)
from statmech.keys.scenario import get_kinds

SMALL = {
    "rule": Scenario(rule=["hebb", "perceptron"], K=[1, 2], N=50, eta=[0.5, 1.0], t=[0, 1], seeds=6, gram=True),
    "network": Network(
        network="erf",
        M=2,
        K=[1, 2],
        N=20,
        eta=[0.5, 1.0],
        noise=0.1,
        eta_v=0.5,
        start={"Q": 0.5, "R": 0.1},
        t=[0, 1],
        seeds=3,
    ),
    "learner": StoredExamples(
        learner=["hebb", "minover"], N=10, alpha=[1.0, 0.5], flip=[0, 0.2], epochs=[1, 4], seeds=3, strengths=True
    ),
    "boundary": load("stopping", ["N=16,20", "seeds=2", "walks=20", "error_rate=0.1,0.2"]),
    "attention": load("attention", ["N=16,20", "seeds=2", "t=0.5", "error_rate=0.1,0.2"]),
    "booster": Boosting(booster="adaboost", N=6, s=[1, 3], P=[20, 40], tests=100, seeds=2),
    "loss": Risk(loss=["square", "hinge"], N=10, alpha=[1.0, 0.5], lam=[0.1, "best"], flip=[0, 0.1], seeds=3),
    "descent": Descent(
        descent=["gradient", "momentum"],
        loss=["square", "hinge"],
        N=12,
        alpha=[1.0, 0.5],
        batch=[1, 0.5],
        flip=0.1,
        epochs=[0, 1, 3],
        seeds=3,
    ),
    "prior": Inference(
        prior=["binary", "gauss"], N=20, alpha=[1.0, 2.0], start=["uninformed", "informed"], steps=5, seeds=3
    ),
    "clusters": Clusters(
        clusters="gaussian",
        loss=["square", "hinge"],
        N=10,
        alpha=[1.0, 0.5],
        lam=[0.1, "best"],
        positives=[0.5, 0.3],
        seeds=3,
    ),
    "population": LabelledRows(
        population=["table", "held_out"],
        loss=["square", "logistic"],
        inputs={"rows": "clouds-60"},
        P=[20, 90],
        lam=[0.1, "best"],
        seeds=3,
    ),
    "rule_clusters": OnlineClusters(
        clusters="gaussian", rule=["hebb", "perceptron"], N=20, positives=[0.5, 0.3], t=[0, 1], seeds=3
    ),
    "rule_population": OnlineRows(rule=["hebb", "perceptron"], inputs={"rows": "clouds-60"}, t=[0, 1], seeds=3),
    "rule_tasks": OnlineTasks(
        rule=["hebb", "adatron"],
        tasks=2,
        overlap=0.5,
        protocol=["interleaved", {"blocks": [0, 0.5]}],
        batch=2,
        N=20,
        t=[0, 1],
        seeds=6,
    ),
    "rule_moving_teacher": MovingTeacher(
        rule=["hebb", "perceptron"], moving_teacher="perceptron", flip=[0, 0.2], N=20, t=[0, 1], seeds=6
    ),
    "network_tasks": NetworkTasks(
        network="erf",
        tasks=2,
        overlap=[0, 0.5],
        protocol=["blocked", {"replay": 0.3}],
        switch=0.5,
        K=2,
        N=20,
        eta_v=0.5,
        t=[0, 1],
        seeds=3,
    ),
    "loss_generations": Generations(
        loss=["square", "hinge"], generations=[0, 2], real=[0, 0.4], N=10, alpha=[1.0, 0.5], flip=[0, 0.1], seeds=3
    ),
    "network_length": FixedLengthNetwork(
        network="hermite",
        degree=3,
        length="fixed",
        teacher="wedge",
        wedge_width=[1.1774100225154747, 1.2],
        eta=[0.15, 0.25],
        N=30,
        until={"R": 0.5},
        t=[1],
        seeds=6,
    ),
    "classifier": load("boundaries", ["folds=2", "classifier=perceptron,tree", "data=clouds,moons"]),
}
SMALL = {name: SMALL[name] for name in get_kinds()}  # a kind of scenario without a small sweep is an error
EVERY = [*SMALL.values()]
IN_BRIEF = ("learner", "booster")  # stand for all in `make test`: they compile nothing
MOST = [pytest.param(SMALL[name], id=name, marks=() if name in IN_BRIEF else pytest.mark.slow) for name in SMALL]
