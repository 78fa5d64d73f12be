"""Principal components of observations, without those that are only noise."""

from __future__ import annotations

import numpy as np

from eigenoptions._types import Float32Array, FloatArray
from eigenoptions.spectra.canonical import compute_canonical_basis

# Most components.
_MOST_COMPONENTS = 512

# Factor by which variances of noise may exceed their limit.
_SLACK = 1.05


def find_components(x: Float32Array, noisy: bool) -> tuple[Float32Array, Float32Array]:
    """Find the principal components of a sample, of variance 1 each or on average.

    Parameters
    ----------
    x : array (n, D)
        The sample.
    noisy : bool
        Whether rows do not repeat, and may have noise: components that look like it
        are left out, and the others keep their shares of the variance.

    Returns
    -------
    centre : array (D,)
        The mean of the sample.
    components : array (D, m)
        ``(x - centre) @ components`` has variance 1 in each column, or on average.
    """
    # Most pixels of most pictures never change. Work grows with the cube of the rest.
    varies = (x != x[0]).any(axis=0)
    if not varies.any():
        varies[0] = True
    varying = x[:, varies]
    centre = varying.mean(axis=0)

    # In units of its noise each column has the same. Only then what is left after the
    # signal looks like white noise.
    unit = np.ones(varying.shape[1], dtype=np.float32)
    if noisy:
        unit = _estimate_noise(varying)

    variances, axes = _find_axes((varying - centre) / unit, noisy)
    scales = np.sqrt(variances)
    if noisy:
        # At variance 1 the finest details would count as much as what is seen at a
        # glance, and each row would be known by its details: it would be memorised.
        scales = np.full(len(variances), np.sqrt(variances.mean()))

    all_centres = x[0].astype(np.float32)
    all_centres[varies] = centre
    components = np.zeros((x.shape[1], len(variances)), dtype=np.float32)
    components[varies] = axes / scales / unit[:, None]
    return all_centres, components


def _find_axes(x: Float32Array, noisy: bool) -> tuple[FloatArray, FloatArray]:
    """Variances ``(m,)``, largest first, and axes ``(D, m)`` of centred data."""
    # The smaller of the two Gram matrices has the same eigenvalues.
    n, d = x.shape
    is_wide = n < d
    gram = x @ x.T if is_wide else x.T @ x
    ascending, vectors = np.linalg.eigh(gram.astype(np.float64) / n)
    variances = ascending[::-1]

    n_signal = len(variances)
    if noisy:
        n_signal = count_above_noise(variances, n, d)
    n_nonzero = int((variances[:n_signal] > 1e-7 * variances[0]).sum())
    n_components = min(max(n_nonzero, 1), _MOST_COMPONENTS)

    # The same components on every machine: signs, and axes of equal variance.
    canonical = compute_canonical_basis(
        ascending[-n_components:],
        vectors[:, -n_components:],
        norm=float(ascending[-1]),
    )
    variances = variances[:n_components]
    axes = canonical[:, ::-1]
    if is_wide:
        axes = (x.T @ axes) / np.sqrt(n * variances)
    return variances, axes


def _estimate_noise(x: Float32Array) -> Float32Array:
    """Estimate the standard deviation ``(D,)`` of the noise in each column.

    Each column has one value most of the time, and rare others that are signal. The
    median deviation does not see them.
    """
    deviation = np.abs(x - np.median(x, axis=0))
    # Of a normal distribution, 0.6745 standard deviations are the median deviation.
    size = np.median(deviation, axis=0) / 0.6745

    # Where a column hardly varies but for rare values, take that of a typical column.
    varies = size > 0.01 * size.max()
    typical = 1.0
    if varies.any():
        typical = np.median(size[varies])
    return np.where(varies, size, typical).astype(np.float32)


def count_above_noise(variances: FloatArray, n: int, d: int) -> int:
    """Count the principal components whose variance is above that of white noise.

    It is the smallest number after which the rest could be white noise: no variance of
    the rest exceeds the upper end of the eigenvalues of noise with the same mean
    (Marchenko and Pastur, 1967).

    Parameters
    ----------
    variances : array
        Variances of the components, in descending order.
    n, d : int
        Number of samples and of dimensions.
    """
    variances = variances[: min(n, d)]

    # Each component takes a dimension and a sample from the rest.
    n_removed = np.arange(len(variances))
    n_left = n - n_removed
    d_left = d - n_removed
    sum_of_rest = np.cumsum(variances[::-1])[::-1]
    mean_of_rest = sum_of_rest / d_left

    upper_end = mean_of_rest * (1 + np.sqrt(d_left / n_left)) ** 2
    is_noise = variances <= _SLACK * upper_end
    if not is_noise.any():
        return len(variances)
    return int(is_noise.argmax())
