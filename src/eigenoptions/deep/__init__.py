"""Trained feature maps: from vectors or pixels to eigenfunctions and options.

`learn` trains *features* with a variational objective (VAMP-2). Then it solves one
exact generalized eigenproblem on the last hidden layer (Rayleigh-Ritz). It returns a
`Spectrum` like any other, whose feature map is an `Encoder`, with a `Certificate`.
``discover(env, features="deep")`` does all of it: `Clusters` of the features are the
states of a table, whose options act on observations.

Needs torch: ``pip install 'eigenoptions[deep]'`` (in a clone ``'.[deep]'``).
"""

from eigenoptions.deep.certificate import Certificate
from eigenoptions.deep.clusters import Clusters
from eigenoptions.deep.dataset import Dataset
from eigenoptions.deep.encoder import Encoder
from eigenoptions.deep.spectrum import LearnedSpectrum
from eigenoptions.deep.training import learn

__all__ = [
    "Certificate",
    "Clusters",
    "Dataset",
    "Encoder",
    "LearnedSpectrum",
    "learn",
]
