"""Laplacians of graphs, their eigenvectors, and what takes their place in samples."""

from eigenoptions.spectra.laplacian import laplacian
from eigenoptions.spectra.spectrum import Spectrum, spectrum

__all__ = ["Spectrum", "laplacian", "spectrum"]
