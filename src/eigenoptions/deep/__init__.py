"""Trained feature maps: from vectors or pixels to eigenfunctions, certificates and options (extra ``deep``: torch).

`learn` trains the *features* with a variational objective (VAMP-2), then solves one exact generalized eigenproblem on
the last hidden layer (Rayleigh-Ritz). It returns a `Spectrum` like any other, whose
feature map is an `Encoder`. ``discover(env, features="deep")`` does all of it.
"""

from eigenoptions.deep.dataset import Dataset
from eigenoptions.deep.encoder import Encoder
from eigenoptions.deep.ritz import Certificate
from eigenoptions.deep.training import LearnedSpectrum, learn

__all__ = ["Certificate", "Dataset", "Encoder", "LearnedSpectrum", "learn"]
