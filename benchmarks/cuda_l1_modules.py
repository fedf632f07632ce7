"""Write CUDA-L1's published modules to a folder for `presage corpus collect --modules`.

    python benchmarks/cuda_l1_modules.py DATA FOLDER

DATA holds `codes.jsonl.zst` and `pairs.parquet`. FOLDER gets, for each KernelBench problem, `NAME.py`, and in `NAME/`
the reference compiled by torch (`compiled.py`) and the candidates.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COMPILED = """

class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.model = torch.compile(Model(*arguments))

    def forward(self, *inputs):
        return self.model(*inputs)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    with pa.input_stream(str(arguments.data / "codes.jsonl.zst"), compression="zstd") as stream:
        codes = {code["code_id"]: code for code in map(json.loads, stream.read().decode().splitlines())}
    pairs = pq.read_table(arguments.data / "pairs.parquet").to_pylist()
    names = {pair["task_code_id"]: f"level{pair['level']}_{pair['problem_id']}" for pair in pairs}
    for task, name in names.items():
        text = codes[task]["text"]
        (arguments.folder / name).mkdir(parents=True, exist_ok=True)
        (arguments.folder / f"{name}.py").write_text(text)
        (arguments.folder / name / "compiled.py").write_text(text + COMPILED)
    for pair in pairs:
        code = codes.get(pair["candidate_code_id"])
        if code and code["role"] == "custom_code" and code["text"] != "None":  # some have no text
            place = arguments.folder / names[pair["task_code_id"]]
            (place / f"{code['code_id']}.py").write_text(code["text"])
    print(f"{len(names)} problems, {sum(1 for _ in arguments.folder.glob('*/*.py'))} modules in {arguments.folder}")


if __name__ == "__main__":
    main()
