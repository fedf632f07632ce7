"""A sparse matrix in CSR form times a dense one."""

import torch


def reference(start, column, value, dense):
    rows = start.numel() - 1
    row = torch.repeat_interleave(
        torch.arange(rows, device=dense.device), start[1:] - start[:-1], output_size=column.numel()
    )
    out = torch.zeros(rows, dense.shape[1], device=dense.device, dtype=dense.dtype)
    return out.index_add(0, row, value[:, None] * dense[column])


def inputs(rows, per_row, columns, width):
    entries = rows * per_row
    row = torch.randint(0, rows, (entries,)).sort().values
    start = torch.searchsorted(row, torch.arange(rows + 1))
    return start, torch.randint(0, columns, (entries,)), torch.randn(entries), torch.randn(columns, width)


cases = [{"rows": 65536, "per_row": 16, "columns": 65536, "width": 64}]
