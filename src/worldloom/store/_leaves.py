"""What the leaves of a pytree are, to a file: arrays, keys, plain values, things left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.core import Tracer

from worldloom.store._errors import Flaw, UnstorableError

Kind = Literal["array", "scalar", "key", "value", "static"]

_NUMPY = (
    *("bool", "float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
_EXTENDED = (
    ml_dtypes.bfloat16,
    ml_dtypes.float4_e2m1fn,
    ml_dtypes.float8_e3m4,
    ml_dtypes.float8_e4m3,
    ml_dtypes.float8_e4m3b11fnuz,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e8m0fnu,
    ml_dtypes.int2,
    ml_dtypes.int4,
    ml_dtypes.uint2,
    ml_dtypes.uint4,
)
DTYPES: dict[str, np.dtype] = {
    **{name: np.dtype(name).newbyteorder("<") for name in _NUMPY},
    **{np.dtype(scalar).name: np.dtype(scalar) for scalar in _EXTENDED},
}
"""The element types a file may hold, by name; their bytes are little-endian."""

PLAIN = (bool, int, float, complex, str)
"""Python types whose values are stored in the manifest."""


@dataclass(frozen=True)
class Leaf:
    """One leaf as the manifest lists it.

    - `path`: where it is in the tree, as `jax.tree_util.keystr` writes it.
    - `kind`: `"array"`, `"scalar"` (a NumPy scalar), `"key"` (random keys), `"value"` (a plain
      Python value) or `"static"` (left out, to be supplied by the template).
    - `dtype`, `shape`: of the stored elements; of the key data for keys. Empty for the others.
    - `note`: the implementation of a key (`"threefry2x32"`), the type of what was left out.
    - `value`: the plain value.
    """

    path: str
    kind: Kind
    dtype: str = ""
    shape: tuple[int, ...] = ()
    note: str = ""
    value: Any = None

    @property
    def has_data(self) -> bool:
        """Does the leaf have elements in the frames of the file?"""
        return self.kind in ("array", "scalar", "key")

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, uncompressed."""
        return math.prod(self.shape) * DTYPES[self.dtype].itemsize if self.has_data else 0


def is_key(leaf: Any) -> bool:
    """Is it an array (or the abstract shape) of typed random keys?"""
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) and jnp.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    )


def is_array(leaf: Any) -> bool:
    """Does it have elements to store?"""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)


def describe(path: str, leaf: Any) -> Leaf:
    """The manifest entry of a leaf of the tree that is being saved."""
    if isinstance(leaf, Tracer):
        raise UnstorableError(f"Leaf {path} is traced. Save outside of jit, vmap, grad and scan.")
    if isinstance(leaf, jax.Array) and leaf.is_deleted():
        raise UnstorableError(f"Leaf {path} was deleted, most likely donated to a jitted function.")
    if is_key(leaf):
        impl = jax.random.key_impl(leaf)
        if not isinstance(impl, str):
            raise UnstorableError(f"Leaf {path}: keys of the unregistered implementation {impl!r}.")
        data = jax.eval_shape(jax.random.key_data, leaf)
        return Leaf(path, "key", data.dtype.name, data.shape, note=impl)
    if is_array(leaf):
        if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, np.memmap):
            raise UnstorableError(
                f"Leaf {path} is a {type(leaf).__name__}, of which only the elements could be "
                "stored. Pass numpy.asarray of it if that is enough."
            )
        if leaf.dtype.name not in DTYPES:
            raise UnstorableError(
                f"Leaf {path} has dtype {leaf.dtype}, which cannot be stored. "
                f"Stored are: {', '.join(DTYPES)}."
            )
        kind = "scalar" if isinstance(leaf, np.generic) else "array"
        return Leaf(path, kind, leaf.dtype.name, leaf.shape)
    if type(leaf) in PLAIN:
        return Leaf(path, "value", value=leaf)
    return Leaf(path, "static", note=f"{type(leaf).__module__}.{type(leaf).__qualname__}")


def elements(leaf: Any) -> np.ndarray:
    """The elements of an array, scalar or key leaf: C-contiguous, little-endian, on the host."""
    if is_key(leaf):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return np.asarray(array, dtype=DTYPES[array.dtype.name], order="C")


def as_keys(data: np.ndarray, impl: str) -> jax.Array:
    """The inverse of `elements` for keys."""
    return jax.random.wrap_key_data(jnp.asarray(data), impl=impl)


def encode_value(value: Any) -> Any:
    """A plain value as strict JSON: numbers that JSON lacks become one-entry objects."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [encode_value(value.real), encode_value(value.imag)]}
    return value


def decode_value(code: Any) -> Any:
    """The inverse of `encode_value`."""
    match code:
        case bool() | int() | float() | str():
            return code
        case {"float": "nan" | "inf" | "-inf" as text, **rest} if not rest:
            return float(text)
        case {"complex": [real, imag], **rest} if not rest:
            real, imag = decode_value(real), decode_value(imag)
            if type(real) is float and type(imag) is float:
                return complex(real, imag)
    raise Flaw("the manifest has a value of an unknown form")
