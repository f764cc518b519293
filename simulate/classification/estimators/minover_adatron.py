r"""MinOver and AdaTron for scikit-learn: perceptrons of large stability.

Both take the same steps as the learners of `simulate.learners`, but for one data set at a time and without compiling
for its shape. Both work in blocks that omit examples without influence on the result.

**AdaTron** visits all examples in turn (`simulate.learners.adatron`), but an example of strength 0 and field
:math:`e_\nu=\mathbf w\cdot\mathbf z^\nu\ge 1` does not change. While the student moves by less than a radius r from its
position at a block's start, an example does not change if

.. math:: x_\nu = 0, \qquad e_\nu - 1 \ge r\,|\mathbf z^\nu|,

by Cauchy and Schwarz. The epochs of a block skip these examples until the student might move by r in the next epoch.
The steps are exactly AdaTron's. The distance from the start is measured at the start of each epoch; within an epoch the
lengths of the steps are added. A visit costs O(N), with N at most P: with more features than examples, the examples are
expressed in a basis of the space that they span.

**MinOver** repeatedly adds the example of smallest field (`simulate.learners.minover`). An update needs the minimum of
the fields :math:`e_\nu=\mathbf z^\nu\cdot\sum_\mu x_\mu\mathbf z^\mu` and a row of their Gram matrix. Within a block
both are restricted to *candidates*, and the block is verified at its end. After a block of S updates, with
:math:`\Delta_s` the sum of its first s examples, every other field was

.. math:: e_\nu(s) = e_\nu(0) + \mathbf z^\nu\cdot\Delta_s
          \ge \Bigl(1-\frac sS\Bigr)e_\nu(0) + \frac sS\,e_\nu(S) - \rho\,|\mathbf z^\nu|, \qquad
          \rho = \max_s\Bigl|\Delta_s-\frac sS\Delta_S\Bigr|,

by Cauchy and Schwarz. The smallest fields of the block also lie below a line in s. So two comparisons, at s = 0 and at
s = S, can show that :math:`\nu` never had the smallest field. An example that fails a comparison becomes a candidate,
and the block is repeated at half its length. The updates are exactly MinOver's (of equal fields, the first is added),
at a cost proportional to the examples near the margin. The lengths are sums of fields:

.. math:: |\Delta_{s+1}|^2 = |\Delta_s|^2 + 2\,\mathbf z\cdot\Delta_s + |\mathbf z|^2, \qquad
          \Delta_{s+1}\cdot\Delta_S = \Delta_s\cdot\Delta_S + \mathbf z\cdot\Delta_S .
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import qr
from sklearn.exceptions import ConvergenceWarning

from simulate.classification.estimators.linear_classifiers import LinearClassifier, LinearStudent, VisitSchedule
from simulate.learners.learner_interface import bound_stability_gap
from statmech.kinds.stored_examples import StoredExamples
from statmech.runtime.compiled_programs import compile_loop

MIN_BLOCK_RADIUS_RATIO = 2.0  # radius of a block over the distance moved in the previous epoch
MAX_BLOCK_EXAMPLE_FRACTION = 0.7  # blocks with a larger fraction of the examples save no time
# shorter blocks double the radius, longer blocks halve it
MIN_BLOCK_EPOCHS = 2
LONG_BLOCK_EPOCHS = 16
FIELDS_PER_SIMD_COMPARISON = 4  # fields compared at a time, so that the compiler vectorises the loop
MIN_BLOCK_UPDATES, MAX_BLOCK_UPDATES = 16, 2**17
MAX_FULL_GRAM_CANDIDATES = 256  # with more candidates, Gram matrix rows are computed on demand
MAX_UPDATE_TO_CHECK_COST_RATIO = 8  # cost of a block's updates over the cost of its verification
BLOCK_OVERHEAD_MULTIPLICATIONS = 2 * 10**5  # multiplications equivalent to the fixed cost of a block
MAX_STORED_GRAM_ENTRIES = 2**27  # 1 GiB for the candidates' rows of the Gram matrix
MAX_NEEDED_FRACTION_TO_PRUNE = 0.8  # candidates are reduced when a smaller fraction is needed
PADDING_FIELD = 1e300  # never the smallest field
NUM_RECORDED_EPOCHS = 32  # logarithmically spaced


class AdaTronRecord(NamedTuple):
    """Recorded strengths (T, P) and numbers of epochs (T,), and whether the final gap is certified."""

    strengths: np.ndarray
    epochs: np.ndarray
    converged: bool


def run_adatron(z: np.ndarray, recorded_epochs: np.ndarray, omega: float, tolerance: float) -> AdaTronRecord:
    """Run AdaTron from x = 0 until its gap is certified.

    Parameters
    ----------
    z : array (P, N)
        Examples times labels.
    recorded_epochs : array (T,)
        Increasing numbers of epochs. Strengths are recorded at these epochs.
    omega : float
        Step size.
    tolerance : float
        The gap, see `simulate.learners.minover`.

    Returns
    -------
    AdaTronRecord
        Recorded times after the end repeat the last.

    Examples
    --------
    >>> run_adatron(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1, 5]), omega=1.0, tolerance=1e-6).strengths
    array([[2. , 0.5],
           [2. , 0.5]])
    """
    run = AdaTronRun(z, omega, tolerance)
    strengths = []
    for max_epochs in recorded_epochs:
        run.run_epochs(int(max_epochs))
        strengths.append(run.x.copy())
    return AdaTronRecord(np.array(strengths), np.minimum(recorded_epochs, run.epochs), run.converged)


class AdaTronRun:
    """State of an AdaTron run: embedding strengths (P,), student and number of epochs.

    `converged` is True once the gap is certified.
    """

    def __init__(self, z: np.ndarray, omega: float, tolerance: float):
        self.N, self.omega, self.tolerance = z.shape[1], omega, tolerance
        self.z = z if len(z) > self.N else np.ascontiguousarray(qr(z.T, mode="r")[0][: len(z)].T)
        self.lengths = np.sqrt(np.einsum("pn,pn->p", self.z, self.z))
        self.x, self.epochs, self.converged = np.zeros(len(z)), 0, False
        self.w, self.fields = np.zeros(self.z.shape[1]), np.zeros(len(z))
        self.last_epoch_distance, self.radius_factor = 0.0, MIN_BLOCK_RADIUS_RATIO

    def run_epochs(self, total_epochs: int) -> None:
        """Run AdaTron until its gap is certified or `total_epochs` epochs have been made."""
        while self.epochs < total_epochs and not self.converged:
            indices, radius = self._find_changeable_examples()
            max_epochs = MIN_BLOCK_EPOCHS if radius == np.inf else max(LONG_BLOCK_EPOCHS, self.epochs // 4)
            num_epochs = self._run_block(indices, radius, min(total_epochs - self.epochs, max_epochs))
            if radius < np.inf and num_epochs < MIN_BLOCK_EPOCHS:
                self.radius_factor *= 2
            elif num_epochs >= LONG_BLOCK_EPOCHS:
                self.radius_factor = max(self.radius_factor / 2, MIN_BLOCK_RADIUS_RATIO)
            self.epochs += num_epochs
            self.w = self.x @ self.z / self.N
            self.fields = self.z @ self.w
            self.converged = bool(bound_stability_gap(self.fields, self.x) <= self.tolerance)

    def _find_changeable_examples(self) -> tuple[np.ndarray, float]:
        """Find the examples that AdaTron can change while the student moves by less than a radius.

        Returns the indices and the radius.
        """
        room = np.where(self.x > 0, -1.0, self.fields - 1)
        indices = np.flatnonzero(room <= self.radius_factor * self.last_epoch_distance * self.lengths)
        if not self.epochs or len(indices) > MAX_BLOCK_EXAMPLE_FRACTION * len(room):
            return np.arange(len(room)), np.inf
        room[indices] = np.inf
        return indices, float(np.min(room / np.where(self.lengths > 0, self.lengths, 1.0)))

    def _run_block(self, indices: np.ndarray, radius: float, max_epochs: int) -> int:
        """Run up to `max_epochs` AdaTron epochs on these examples and return the number of complete epochs."""
        x, z = self.x[indices], self.z[indices]
        limits = self.omega, self.tolerance, radius, float(self.N), max_epochs
        num_epochs, self.last_epoch_distance = run_epochs_in_ball(z, self.lengths[indices], x, self.w, *limits)
        self.x[indices] = x
        return int(num_epochs)


@compile_loop("f8(f8[::1], f8[::1])")
def compute_distance(v, w):  # type: ignore[no-untyped-def]
    """Compute the distance between two AdaTron students (N,)."""
    square = 0.0
    for n in range(len(v)):
        square += (v[n] - w[n]) * (v[n] - w[n])
    return np.sqrt(square)


@compile_loop("f8(f8[::1], f8[:,::1], i8)")
def compute_field(w, z, example):  # type: ignore[no-untyped-def]
    """Compute the field of an AdaTron student on one example."""
    field = 0.0
    for n in range(len(w)):
        field += w[n] * z[example, n]
    return field


@compile_loop("Tuple((i8, f8))(f8[:,::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, f8, i8)")
def run_epochs_in_ball(z, lengths, x, w, omega, tolerance, radius, N, max_epochs):  # type: ignore[no-untyped-def]
    """Run AdaTron epochs until the gap is certified or the student leaves a ball around its start.

    Parameters
    ----------
    z
        Examples times their labels (P, N).
    lengths
        Lengths of the examples (P,).
    x, w
        Strengths (P,) and student (N,); updated.
    omega, tolerance
        Step size and relative gap of `AdaTron`.
    radius
        Largest distance of the student from its start.
    N
        Input dimension, which divides the fields.
    max_epochs
        Largest number of epochs.

    Returns
    -------
    epochs
        The number of complete epochs.
    way
        The distance that the student moved in the last epoch.
    """
    start, w_before, x_before, max_distance, worst = w.copy(), w.copy(), x.copy(), 0.0, 0
    for epoch in range(max_epochs):
        for n in range(len(w)):
            w_before[n] = w[n]
        for i in range(len(x)):
            x_before[i] = x[i]
            square = lengths[i] * lengths[i] / N
            step = omega * (1 - compute_field(w, z, i)) / (square if square > 0 else 1.0)
            step = step if step > -x[i] else -x[i]
            if step == 0:
                continue
            x[i] += step
            step /= N
            for n in range(len(w)):
                w[n] += step * z[i, n]
            max_distance += abs(step) * lengths[i]
            if max_distance > radius:
                max_distance = compute_distance(w, start)
            if max_distance > radius:  # skipped examples might have changed
                epoch_distance = compute_distance(w, w_before)
                for j in range(i + 1):
                    x[j] = x_before[j]
                return epoch, epoch_distance
        total, squared_norm = 0.0, 0.0
        for i in range(len(x)):
            total += x[i]
        for n in range(len(w)):
            squared_norm += N * w[n] * w[n]
        min_field = compute_field(w, z, worst)
        if squared_norm - min_field * total > tolerance * squared_norm:  # one violating example disproves convergence
            continue
        for i in range(len(x)):
            field = compute_field(w, z, i)
            if field < min_field:
                min_field, worst = field, i
        if squared_norm - min_field * total <= tolerance * squared_norm:
            return epoch + 1, compute_distance(w, w_before)
    return max_epochs, compute_distance(w, w_before)


class MinOverRecord(NamedTuple):
    """Recorded strengths (T, P) and numbers of updates (T,), and the final fields (P,)."""

    strengths: np.ndarray
    updates: np.ndarray
    fields: np.ndarray


def run_minover(z: np.ndarray, recorded_updates: np.ndarray, stop_rule: str = "epochs") -> MinOverRecord:
    """Run MinOver from w = 0.

    Parameters
    ----------
    z : array (P, N)
        Examples times labels.
    recorded_updates : array (T,)
        Increasing numbers of updates. Strengths are recorded at these numbers.
    stop_rule : str
        Stop rule, one of `statmech.students.learners.STOP_RULE_MEANINGS`.

    Returns
    -------
    MinOverRecord
        Fields in units of z.z. Times after the end repeat the last record.

    Examples
    --------
    >>> run_minover(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1, 5])).strengths
    array([[1., 0.],
           [4., 1.]])
    """
    run, recorded = MinOverRun(z, stop_rule), []
    for before, added in run.iterate_blocks(int(recorded_updates[-1])):
        first = run.updates - len(added)
        inside = recorded_updates[(first < recorded_updates) & (recorded_updates <= run.updates)]
        recorded += [before + np.bincount(added[: time - first], minlength=len(z)) for time in inside]
    strengths = np.array(recorded + [run.strengths] * (len(recorded_updates) - len(recorded)))
    return MinOverRecord(strengths, np.minimum(recorded_updates, run.updates), run.fields)


class ExampleGram:
    """Examples multiplied by their labels, z (P, N), or the Gram matrix of z if that is smaller."""

    def __init__(self, z: np.ndarray):
        self.gram = z @ z.T if len(z) < z.shape[1] else None
        self.z, self.squares = z, np.einsum("pn,pn->p", z, z)
        self.lengths = np.sqrt(self.squares)

    def fields(self, strengths: np.ndarray) -> np.ndarray:
        """Compute the fields (P,) of embedding strengths (P,), in units of z.z."""
        return self.z @ (strengths @ self.z) if self.gram is None else self.gram @ strengths


class MinOverCandidates:
    """Candidates for the smallest field, with increasing indices, and rows of their Gram matrix.

    With many candidates, rows are computed on demand.
    """

    def __init__(self, examples: ExampleGram, indices: np.ndarray, updates: int):
        self.example_indices, padding = indices, -len(indices) % FIELDS_PER_SIMD_COMPARISON
        self.z, self.squares = examples.z[indices], np.pad(examples.squares[indices], (0, padding))
        self.slots, self.num_rows = np.full(len(indices) + padding, -1), 0
        if examples.gram is None and len(indices) > MAX_FULL_GRAM_CANDIDATES:
            room = max(updates, MAX_STORED_GRAM_ENTRIES // len(self.slots))
            self.rows = np.zeros((min(len(indices), room), len(self.slots)))  # memory pages are allocated on first use
        else:
            inner = self.z @ self.z.T if examples.gram is None else examples.gram[np.ix_(indices, indices)]
            self.rows, self.num_rows = np.pad(inner, (0, padding)), len(indices)
            self.slots[: len(indices)] = np.arange(len(indices))

    def has_room_for_gram_rows(self, updates: int) -> bool:
        """Return True if the Gram matrix rows of `updates` more updates fit."""
        return len(self.rows) >= min(len(self.example_indices), self.num_rows + updates)

    def add_gram_row(self, candidate: int) -> None:
        """Add the Gram matrix row of one candidate."""
        np.matmul(self.z, self.z[candidate], out=self.rows[self.num_rows, : len(self.example_indices)])
        self.slots[candidate], self.num_rows = self.num_rows, self.num_rows + 1


class MinOverBlock(NamedTuple):
    """Result of a block of S updates: added candidates, their fields, final strengths and fields, and slacks.

    Candidates and their fields have the shape (S,), strengths, fields and slacks (P,). An example of positive slack
    never had the smallest field.
    """

    added_examples: np.ndarray
    smallest_fields: np.ndarray
    strengths: np.ndarray
    fields: np.ndarray
    exclusion_slack: np.ndarray


class MinOverRun:
    """State of a MinOver run: strengths and fields (P,) after a number of updates."""

    def __init__(self, z: np.ndarray, stop: str):
        self.examples, self.patience = ExampleGram(z), PatienceRule(stop, len(z))
        self.strengths, self.fields = np.zeros((2, len(z)))
        self.updates, self.ended, self.size = 0, False, MIN_BLOCK_UPDATES
        self._set_candidates(np.arange(len(z)))

    def iterate_blocks(self, total_updates: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the strengths before each block of MinOver updates and the examples that the block adds.

        The run ends after `total_updates` updates or by the stop rule.
        """
        while self.updates < total_updates and not self.ended:
            block = self._try_block(min(self.size, total_updates - self.updates))
            doubtful = block.exclusion_slack <= 0
            doubtful[self.candidates.example_indices] = False
            if doubtful.any():
                self.size = max(self.size // 2, MIN_BLOCK_UPDATES)
                self._set_candidates(np.union1d(self.candidates.example_indices, np.flatnonzero(doubtful)))
            else:
                yield self._accept_block(block)
                self._plan_next_block(block.exclusion_slack)

    def _plan_next_block(self, slack: np.ndarray) -> None:
        """Choose the length of the next MinOver block, and keep doubtful candidates plus a reserve of one eighth."""
        number, doubt = len(self.candidates.example_indices), int(np.sum(slack <= 0))
        longest = MAX_UPDATE_TO_CHECK_COST_RATIO * (self.examples.z.size + BLOCK_OVERHEAD_MULTIPLICATIONS) // number
        self.size = max(MIN_BLOCK_UPDATES, min(2 * self.size, longest, MAX_BLOCK_UPDATES))
        if doubt + doubt // 8 + FIELDS_PER_SIMD_COMPARISON < MAX_NEEDED_FRACTION_TO_PRUNE * number:
            self._set_candidates(find_lowest_indices(slack, doubt + doubt // 8))
        elif not self.candidates.has_room_for_gram_rows(self.size):
            self._set_candidates(self.candidates.example_indices)

    def _set_candidates(self, indices: np.ndarray) -> None:
        self.candidates = MinOverCandidates(self.examples, indices, 2 * self.size)

    def _accept_block(self, block: MinOverBlock) -> tuple[np.ndarray, np.ndarray]:
        """Accept a block of MinOver updates, cut off where the stop rule ends the run."""
        before, added = self.strengths, block.added_examples
        num_kept = (
            self.patience.count_updates_before_stop(block.smallest_fields, self.examples.squares[added])
            if self.patience.is_active
            else len(added)
        )
        self.strengths, self.fields, self.ended = block.strengths, block.fields, self.patience.ended
        if num_kept < len(added):
            added = added[:num_kept]
            self.strengths = before + np.bincount(added, minlength=len(before))
            self.fields = self.examples.fields(self.strengths)
        self.updates += len(added)
        return before, added

    def _try_block(self, size: int) -> MinOverBlock:
        """Simulate a block of MinOver updates with the current candidates."""
        candidates, number = self.candidates, len(self.candidates.example_indices)
        fields = np.full(len(candidates.slots), PADDING_FIELD)
        fields[:number] = self.fields[candidates.example_indices]
        before, counts = fields.copy(), np.zeros(len(fields))
        added, min_fields = np.empty(size, int), np.empty(size)
        num_updates, missing = run_minover_updates(
            candidates.slots, candidates.rows, fields, counts, added, min_fields, 0
        )
        while num_updates < size:
            candidates.add_gram_row(missing)
            num_updates, missing = run_minover_updates(
                candidates.slots, candidates.rows, fields, counts, added, min_fields, num_updates
            )
        rho2, start, rise = bound_block_deviation(
            candidates.squares, before, fields - before, counts, added, min_fields
        )
        strengths = self.strengths.copy()
        strengths[candidates.example_indices] += counts[:number]
        after = self.examples.fields(strengths)
        above = np.minimum(self.fields - start, after - (start + rise * size))
        slack = above - np.sqrt(rho2) * self.examples.lengths - 1e-12 * abs(start)
        return MinOverBlock(candidates.example_indices[added], min_fields, strengths, after, slack)


def find_lowest_indices(values: np.ndarray, number: int) -> np.ndarray:
    """Return the indices of the `number` lowest values (P,) in increasing order.

    The number is rounded up to a positive multiple of `FIELDS_PER_SIMD_COMPARISON`.
    """
    number = min(len(values), max(FIELDS_PER_SIMD_COMPARISON, number + -number % FIELDS_PER_SIMD_COMPARISON))
    return np.sort(np.argpartition(values, number - 1)[:number])


class PatienceRule:
    """Stop rule of MinOver, which ends a run after P updates without an increase of the monitored quantity.

    See `simulate.learners.minover`.
    """

    def __init__(self, stop: str, P: int):
        self.stop, self.P, self.is_active = stop, P, stop != "epochs"
        self.best, self.waited, self.square, self.ended = -np.inf, 0, 0.0, False

    def count_updates_before_stop(self, min_fields: np.ndarray, squares: np.ndarray) -> int:
        """Count the updates of a MinOver block that precede the end of the run.

        Updates are described by the smallest fields and the squared lengths of the added examples (S,).
        """
        grown = np.flatnonzero(self._find_new_maxima(min_fields, squares))
        last = np.full(len(min_fields), -self.waited - 1)
        last[grown] = grown
        waited = np.arange(len(min_fields)) - np.maximum.accumulate(last)
        self.waited, self.ended = int(waited[-1]), bool(waited.max() >= self.P)
        return int(np.argmax(waited >= self.P)) + 1 if self.ended else len(min_fields)

    def _find_new_maxima(self, min_fields: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return a mask of the MinOver updates that raise the maximum of the monitored quantity.

        For the smallest field, an equal value counts as well.
        """
        watched = min_fields
        if self.stop == "stability-patience":
            lengths2 = self.square + np.append(0.0, np.cumsum(2 * min_fields + squares))
            self.square, positive = float(lengths2[-1]), lengths2[:-1] > 0
            watched = np.where(positive, min_fields / np.sqrt(np.where(positive, lengths2[:-1], 1.0)), -np.inf)
        best = np.maximum.accumulate(np.append(self.best, watched))
        self.best = float(best[-1])
        return watched > best[:-1] if self.stop == "stability-patience" else watched >= best[:-1]


@compile_loop("UniTuple(i8, 2)(i8[::1], f8[:,::1], f8[::1], f8[::1], i8[::1], f8[::1], i8)")
def run_minover_updates(gram_row_indices, rows, fields, counts, added, min_fields, updates):  # type: ignore[no-untyped-def]
    """Run MinOver updates until the block is complete or a Gram matrix row is missing.

    Parameters
    ----------
    gram_row_indices
        Index of each candidate's row in `rows` (n,), negative if missing.
    rows
        Rows of the Gram matrix.
    fields, counts
        Fields of the candidates, and how often each was added (n,); updated.
    added, min_fields
        The candidate added at each update, and its field (S,); written.
    updates
        Number of previous updates in the block.

    Returns
    -------
    updates
        The number of updates made.
    at
        The candidate whose row is missing, if the block is incomplete.
    """
    groups = len(fields) // 4
    lowest, index = fields[0], 0
    for i in range(1, len(fields)):
        if fields[i] < lowest:
            lowest, index = fields[i], i
    for s in range(updates, len(added)):
        slot = gram_row_indices[index]
        if slot < 0:
            return s, index
        added[s], min_fields[s] = index, lowest
        counts[index] += 1
        lowest, first = 1e300, 0
        for four in range(groups):  # unrolled by hand, so that the compiler vectorises it
            i = 4 * four
            a, b = fields[i] + rows[slot, i], fields[i + 1] + rows[slot, i + 1]
            c, d = fields[i + 2] + rows[slot, i + 2], fields[i + 3] + rows[slot, i + 3]
            fields[i], fields[i + 1], fields[i + 2], fields[i + 3] = a, b, c, d
            a = a if a < c else c
            b = b if b < d else d
            a = a if a < b else b
            if a < lowest:
                lowest, first = a, i
        a, b, c = fields[first], fields[first + 1], fields[first + 2]
        index = first + (0 if a == lowest else 1 if b == lowest else 2 if c == lowest else 3)
    return len(added), index


@compile_loop("UniTuple(f8, 3)(f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], f8[::1])")
def bound_block_deviation(squares, before, changes, counts, added, min_fields):  # type: ignore[no-untyped-def]
    """Return rho squared of a MinOver block, and the start and slope of a line that bounds its smallest fields.

    The slope is per update. Inlined into `run_minover_updates`, this code would slow down the loop there.

    Parameters
    ----------
    squares
        Squared lengths of the candidates (n,).
    before, changes
        Fields of the candidates before the block, and their changes (n,).
    counts
        How often each candidate was added (n,).
    added, min_fields
        The candidate added at each update, and its field (S,).
    """
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * changes[i]
    inverse_steps = 1 / len(added)
    start, rise = min_fields[0], (min_fields[-1] - min_fields[0]) * inverse_steps
    square, projection, rho2 = 0.0, 0.0, 0.0
    for s in range(len(added)):
        index, fraction = added[s], s * inverse_steps
        squared_deviation = square + fraction * (fraction * total - 2 * projection)
        rho2 = squared_deviation if squared_deviation > rho2 else rho2
        above = min_fields[s] - s * rise
        start = above if above > start else start
        square += 2 * (min_fields[s] - before[index]) + squares[index]
        projection += changes[index]
    return rho2 + 1e-10 * abs(total), start, rise


class StabilityClassifier(LinearClassifier):
    """Base class of MinOver and AdaTron, which learn embedding strengths as in the teacher-student simulation.

    Neither MinOver nor AdaTron converges if the examples are not separable. The result is then the student with the
    fewest training errors among about 30 recorded students.
    """

    max_epochs: int
    strengths_: list[np.ndarray]

    def __new__(cls, *values: Any, **options: Any) -> Self:
        """Reject class weights and create the estimator."""
        _reject_weight_options(cls.__name__, options)
        return super().__new__(cls)

    def fit(self, X: Any, y: Any, **options: Any) -> Self:  # type: ignore[override]  # scikit-learn reads the names
        """Fit MinOver or AdaTron to examples X (m, features) with labels y (m,), without sample weights."""
        name = type(self).__name__
        _reject_weight_options(name, options)
        if unknown := options.keys() - {"sample_weight"}:
            raise TypeError(f"{name}.fit() got an unexpected keyword argument '{min(unknown)}'")
        self.strengths_ = []
        return super().fit(X, y)

    def _learn(self, z: np.ndarray, visits: VisitSchedule) -> LinearStudent:
        recorded = np.unique(np.rint(np.geomspace(1, self.max_epochs, NUM_RECORDED_EPOCHS)).astype(int))
        strengths, epochs, converged = self._find_strengths(z, recorded)
        best_index = len(recorded) - 1
        if not converged:
            message = (
                f"{type(self).__name__} did not converge in {self.max_epochs} epochs: inseparable, or too few epochs"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
            errors = np.sum(strengths @ z @ z.T <= 0, axis=1)
            best_index -= int(np.argmin(errors[::-1]))  # the latest student with the fewest errors
        self.strengths_.append(strengths[best_index])
        return LinearStudent(strengths[best_index] @ z / z.shape[1], max(1, int(epochs[best_index])))

    @abstractmethod
    def _find_strengths(self, z: np.ndarray, recorded_epochs: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Compute the embedding strengths (T, m) after each recorded number of epochs (T,).

        Also returns the number of epochs made (T,), and True if learning converged.
        """

    def _check_parameters(self) -> None:
        parameters = {
            key: value for key, value in self.get_params().items() if key not in ("max_epochs", "fit_intercept")
        }
        # checks the parameters, with the messages of a config
        StoredExamples(learner=type(self).__name__.lower(), alpha=1.0, epochs=(self.max_epochs,), **parameters)


def _reject_weight_options(name: str, options: dict[str, Any]) -> None:
    """Raise `TypeError` if options of MinOver or AdaTron contain weights."""
    for option in ("sample_weight", "class_weight"):
        if options.get(option) is not None:
            why = "the largest stability depends on the examples, not on their weights. Leave out examples of weight 0"
            raise TypeError(f"{name} does not support {option}: {why}")


class MinOver(StabilityClassifier):
    r"""MinOver, which repeatedly adds the example with the smallest stability (`simulate.learners.minover`).

    .. math:: \mathbf w \leftarrow \mathbf w + y^\mu\mathbf x^\mu, \qquad
              \mu = \mathrm{argmin}_\nu\, y^\nu\,\mathbf w\cdot\mathbf x^\nu

    (Krauth & Mezard 1987). The intercept is the weight of a constant feature 1, and counts in the stability.

    Parameters
    ----------
    max_epochs : int
    stop : {"epochs", "stability-patience", "field-patience"}
        Stop rule, as in a config.
    within : float
        Relative distance from the largest stability. A `ConvergenceWarning` is issued if it is not certified.
    fit_intercept : bool

    Attributes
    ----------
    classes_, coef_, intercept_
    n_iter_ : int
        Epochs.
    strengths_ : list of arrays (m,)
        Embedding strengths.

    Examples
    --------
    >>> model = MinOver(max_epochs=1000).fit([[2.0], [-1.0], [-3.0]], [1, 0, 0])
    >>> bool(abs(-model.intercept_[0] / model.coef_[0, 0] - 0.5) < 0.01)      # half way between 2 and -1
    True
    """

    def __init__(self, max_epochs: int = 1000, stop: str = "epochs", within: float = 0.01, fit_intercept: bool = True):
        self.max_epochs = max_epochs
        self.stop = stop
        self.within = within
        self.fit_intercept = fit_intercept

    def _find_strengths(self, z: np.ndarray, recorded_epochs: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:

        run = run_minover(z, recorded_epochs * len(z), self.stop)
        converged = bound_stability_gap(run.fields, run.strengths[-1]) <= self.within
        return run.strengths, -(-run.updates // len(z)), bool(converged)


class AdaTron(StabilityClassifier):
    r"""Batch AdaTron, the perceptron of maximum stability by coordinate ascent (`simulate.learners.adatron`).

    .. math:: x_\mu \leftarrow x_\mu + \max\{-x_\mu,\ \omega(1-e_\mu)/G_{\mu\mu}\}

    (Anlauf & Biehl 1989). The intercept is the weight of a constant feature 1, and counts in the stability.

    Parameters
    ----------
    max_epochs : int
        Maximal number of epochs; a `ConvergenceWarning` is issued if it is not enough.
    omega : float
        Step size, 0 < omega < 2.
    tolerance : float
        Learning stops at this certified relative distance from the largest stability.
    fit_intercept : bool

    Examples
    --------
    >>> model = AdaTron().fit([[2.0], [-1.0], [-3.0]], [1, 0, 0])
    >>> model.decision_function([[2.0], [-1.0], [-3.0]]).round(4).tolist()      # the nearest two: equal
    [1.0, -1.0, -2.3333]
    """

    def __init__(self, max_epochs: int = 1000, omega: float = 1.0, tolerance: float = 1e-6, fit_intercept: bool = True):
        self.max_epochs = max_epochs
        self.omega = omega
        self.tolerance = tolerance
        self.fit_intercept = fit_intercept

    def _find_strengths(self, z: np.ndarray, recorded_epochs: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:

        return run_adatron(z, recorded_epochs, self.omega, self.tolerance)
