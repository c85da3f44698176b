"""LIOB: which quantization of this model should I run here, what does it cost me, and how sure are we?"""

__version__ = "0.1.0"
