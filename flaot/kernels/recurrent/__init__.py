"""LSTM, GRU and RNN on CPUs: portable code for every option, vector code for the usual ones."""

from flaot.kernels.recurrent.portable import RECURRENT
from flaot.kernels.recurrent.steps import STEPS

__all__ = ["RECURRENT", "STEPS"]
