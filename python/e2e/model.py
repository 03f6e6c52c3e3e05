"""Makes a tiny Llama of random weights, with a tokenizer that makes a token of each byte."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

END = "<|end|>"


def make(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate([*alphabet, END])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    tokenizer.save(str(directory / "tokenizer.json"))
    write(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "model_max_length": 1024,
        },
    )
    write(
        directory / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "max_position_embeddings": 1024,
            "rms_norm_eps": 1e-5,
            "vocab_size": len(vocabulary),
            "bos_token_id": vocabulary[END],
            "eos_token_id": vocabulary[END],
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
        },
    )
    return directory


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1))
