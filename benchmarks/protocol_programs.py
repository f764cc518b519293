"""Calls of two published codes of protocols, for a Python that has torch, CasADi, matplotlib and tqdm.

    python protocol_programs.py two_tasks '{...}'    # with the folder of teacher_student_dynamics on PYTHONPATH
    python protocol_programs.py best_rate '{...}'    # on dropout.ipynb of optimal_learning

The last line printed is the answer, in JSON. The runner of two tasks needs packages of its author that are on no index,
so that its steps are written here around that network. The notebook's cells run unchanged, with other values between
them: all units are active, and the learning rate takes the place of the activation probability as the control.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

BETWEEN = {  # values that replace the notebook's after a cell
    3: "Q0, R0 = 0.25 * np.eye(K), np.array([[0.1], [0.05]])",
    4: "alphaF, N_control = {last}, {segments}",
    6: "eta, r = r, 1",
    7: "eta, r = 1, eta",
    12: "avg_r = 1.0",
    13: "lbw = O0 + [0.0, *[-inf] * len(O0)] * N_control + [1]; ubw = O0 + [5.0, *[inf] * len(O0)] * N_control + [1]",
}


def two_tasks(given: dict[str, Any]) -> dict[str, Any]:
    """The errors (seeds, T, tasks) at recorded times, and seconds of a step."""
    import torch
    from teacher_student_dynamics.networks.multi_head_network import MultiHeadNetwork

    def network(J: np.ndarray, heads: list[list[float]], **more: bool) -> Any:
        made = MultiHeadNetwork(N, len(J), 1, len(heads), False, "scaled_erf", 1.0, **more)
        for layer, weights in zip([*made.layers, *made.heads], [J, *([head] for head in heads)], strict=True):
            layer.weight.data = torch.tensor(np.array(weights), dtype=torch.float32)
        return made

    torch.set_num_threads(1)
    inputs, mse, N = torch.distributions.Normal(0, 1), torch.nn.MSELoss(), given["N"]
    found, seconds, at = [], 0.0, [round(N * t) for t in given["t"]]
    gram = np.block([[np.array(given["T"]), np.transpose(given["R"])], [np.array(given["R"]), np.array(given["Q"])]])
    for seed in range(given["seeds"]):
        torch.manual_seed(seed)
        basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((N, len(gram))))
        weights = np.linalg.cholesky(gram) @ basis.T * np.sqrt(N)
        teachers = [network(weights[m : m + 1], [[1.0]], freeze=True) for m in (0, 1)]
        student = network(weights[2:], given["v"], train_hidden_layer=True, train_head_layer=True)
        hidden, heads = student.get_trainable_parameters()
        optimiser = torch.optim.SGD(hidden + [{**head, "lr": 1 / N} for head in heads], lr=1.0)
        tests, errors = inputs.sample((given["tests"], N)), []
        labels = [teacher.forward(tests) for teacher in teachers]
        for step in range(at[-1] + 1):
            if step in at:
                with torch.no_grad():
                    outputs = student.forward_all(tests)
                    errors.append([0.5 * mse(*pair).item() for pair in zip(outputs, labels, strict=True)])
            begin, task = time.process_time(), int(2 * step >= at[-1])
            if step in (0, at[-1] // 2):
                student.signal_boundary(new_head=task)
            x = inputs.sample((1, N))
            loss = 0.5 * mse(student.forward(x), teachers[task].forward(x))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            seconds += time.process_time() - begin
        found.append(errors)
    return {"errors": found, "seconds": seconds / (at[-1] + 1) / given["seeds"]}


def best_rate(given: dict[str, Any]) -> dict[str, Any]:
    """The optimum and its number of iterations, or only one iteration's derivatives, with seconds before and for it."""
    os.environ["MPLBACKEND"] = "agg"
    with open(given["notebook"]) as file:
        cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for at, cell in enumerate(cells[:15]):
        exec(cell, names)
        exec(BETWEEN.get(at, "").format(**given), names)
    before, solver = time.process_time(), names["solver"]
    if given["whole"]:
        exec(cells[15], names)
        ended, error = solver.stats(), 2 * float(names["sol"]["f"])  # theirs is half of ours
        work = f"{ended['iter_count']} iterations: {ended['return_status']}"
    else:
        solver.get_function("nlp_jac_g")(names["w0"], [])
        solver.get_function("nlp_hess_l")(names["w0"], [], 1, np.ones(len(names["lbg"])))
        work, error = "derivatives of one iteration", np.nan
    return {"work": work, "error": error, "set_up": before, "seconds": time.process_time() - before}


if __name__ == "__main__":
    print(json.dumps({"two_tasks": two_tasks, "best_rate": best_rate}[sys.argv[1]](json.loads(sys.argv[2]))))
