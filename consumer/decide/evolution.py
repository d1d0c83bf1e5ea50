"""Columns of values whose schema comes with them, and changes: what takes the values of all schemas.

A type is Arrow's. Of two that are not the same the wider counts, where it holds every value of the other as it is; a
struct has the fields of both. What differs otherwise cannot be in one column.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from consumer.decide.columns import MOST_DIGITS, OF_EVERY_RECORD

_INTEGER_DIGITS = {pa.int32(): 10, pa.int64(): 19}
_SQL = {
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


class IncompatibleError(ValueError):
    """No column takes the values of both; says which, and why."""


def column_of(field: str) -> str:
    """The column that a field at the top of a value becomes: those of every record have their names already."""
    return f"{field}_" if field.lower() in OF_EVERY_RECORD else field


def field_of(column: str) -> str:
    """Which field becomes this column."""
    return column[:-1] if column.endswith("_") and column[:-1].lower() in OF_EVERY_RECORD else column


def columns_of(fields: Iterable[pa.Field]) -> pa.StructType:
    """The columns of a schema with these fields.

    Raises:
        IncompatibleError: a table cannot have them, such as two whose names differ in case only.
    """
    columns = pa.struct([pa.field(column_of(field.name), field.type) for field in fields])
    _require_names(columns, "")
    return columns


def merged(there: pa.DataType, new: pa.DataType, path: str = "") -> pa.DataType:
    """The narrowest type that takes the values of both.

    Raises:
        IncompatibleError: there is none.
    """
    if pa.types.is_struct(there) and pa.types.is_struct(new):
        fields = {field.name: field.type for field in there}
        for field in new:
            known = fields.get(field.name)
            fields[field.name] = field.type if known is None else merged(known, field.type, _inside(path, field.name))
        both = pa.struct(list(fields.items()))
        _require_names(both, path)
        return both
    if pa.types.is_list(there) and pa.types.is_list(new):
        return pa.list_(merged(there.value_type, new.value_type, f"{path}[]"))
    if pa.types.is_map(there) and pa.types.is_map(new) and there.key_type == new.key_type:
        return pa.map_(new.key_type, merged(there.item_type, new.item_type, f"{path}[]"))
    wider = new if there == new else _wider(there, new)
    if wider is None:
        raise IncompatibleError(f"{path} is {in_sql(new)}, and was {in_sql(there)}")
    return wider


def of_fields(columns: pa.StructType, there: pa.StructType) -> pa.StructType:
    """These columns as wide as those that are there.

    Raises:
        IncompatibleError: one of them cannot be.
    """
    both = merged(there, columns)
    return pa.struct([both.field(column.name) for column in columns])


def too_narrow(there: pa.DataType, new: pa.DataType, path: str = "") -> Iterator[str]:
    """The columns, and fields of columns, that have to become wider for the values of `new`: what they are to be.

    Raises:
        IncompatibleError: one of them cannot be.
    """
    if pa.types.is_struct(there) and pa.types.is_struct(new):
        types = {field.name.lower(): field.type for field in there}
        for field in new:
            if (known := types.get(field.name.lower())) is not None:
                yield from too_narrow(known, field.type, _inside(path, field.name))
    elif pa.types.is_list(there) and pa.types.is_list(new):
        yield from too_narrow(there.value_type, new.value_type, f"{path}[]")
    elif pa.types.is_map(there) and pa.types.is_map(new) and there.key_type == new.key_type:
        yield from too_narrow(there.item_type, new.item_type, f"{path}[]")
    elif merged(there, new, path) != there:
        yield f"{path} is {in_sql(new)}, and was {in_sql(there)}"


def in_sql(kind: pa.DataType) -> str:
    """The type as SQL names it."""
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {in_sql(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{in_sql(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{in_sql(kind.key_type)}, {in_sql(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SQL.get(kind, str(kind))


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    numbers = {one, other}
    if numbers == {pa.int32(), pa.int64()}:
        return pa.int64()
    if numbers in ({pa.int32(), pa.float64()}, {pa.float32(), pa.float64()}):
        return pa.float64()
    digits = [_digits(kind) for kind in (one, other)]
    if not any(map(pa.types.is_decimal, numbers)) or None in digits:
        return None
    whole, scale = (max(each) for each in zip(*filter(None, digits), strict=True))
    return pa.decimal128(whole + scale, scale) if whole + scale <= MOST_DIGITS else None


def _digits(kind: pa.DataType) -> tuple[int, int] | None:
    """Before and behind the point."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return (_INTEGER_DIGITS[kind], 0) if kind in _INTEGER_DIGITS else None


def _require_names(struct: pa.StructType, path: str) -> None:
    names: dict[str, str] = {}
    for field in struct:
        name = _inside(path, field.name)
        if not field.name or set(field.name) & set(" ,;{}()\n\t="):
            raise IncompatibleError(f"{field.name!r} cannot be the name of a column")
        if (other := names.get(field.name.lower())) is not None:
            raise IncompatibleError(f"{other} and {name} would be the same column")
        names[field.name.lower()] = name
        _require_inner_names(field.type, name)


def _require_inner_names(kind: pa.DataType, path: str) -> None:
    if pa.types.is_struct(kind):
        _require_names(kind, path)
    elif pa.types.is_list(kind):
        _require_inner_names(kind.value_type, f"{path}[]")
    elif pa.types.is_map(kind):
        _require_inner_names(kind.item_type, f"{path}[]")


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
