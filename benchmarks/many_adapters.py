"""One model with many adapters in one pass: several trainings of a small model, done as one.

A small model leaves a GPU idle: it takes longer to launch a kernel than to run it. Here the rows of a batch belong to
several trainings, each with an adapter of its own, which is multiplied in batches. The trainings do not affect one
another, and the model's weights are read once for all. Answers to a question share its prompt, in training as well;
what is computed is the same as for each answer alone. For models of the kind of Qwen2 and Llama.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch


class ManyLora(torch.nn.Module):
    """A linear layer with one adapter for each training. The rows of its input are ordered by training."""

    def __init__(self, base: Any, a: torch.Tensor, b: torch.Tensor, scale: float, trainings: int) -> None:
        super().__init__()
        self.base, self.scale = base, scale
        self.a = torch.nn.Parameter(a.float().repeat(trainings, 1, 1))
        self.b = torch.nn.Parameter(b.float().repeat(trainings, 1, 1))
        self.base.requires_grad_(False)
        self.frozen: tuple[torch.Tensor, torch.Tensor] | None = None
        """The adapters in the precision of the model, for passes without gradients."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.frozen is not None and not torch.is_grad_enabled():
            a, b = self.frozen
        else:
            a, b = self.a.to(x.dtype), self.b.to(x.dtype)
        rows = x.reshape(len(a), -1, x.shape[-1])
        added = torch.bmm(torch.bmm(rows, a.transpose(1, 2)), b.transpose(1, 2))
        whole: torch.Tensor = self.base(x)
        return torch.add(whole, added.view_as(whole), alpha=self.scale)


class ManyAdapters:
    """A causal language model with `trainings` copies of an adapter."""

    def __init__(self, adapted: Any, trainings: int) -> None:
        """adapted: a model of peft's with one LoRA adapter without dropout."""
        self.trainings = trainings
        self.layers: list[ManyLora] = []
        for parent in list(adapted.modules()):
            for name, module in list(parent.named_children()):
                if hasattr(module, "lora_A"):
                    a, b = module.lora_A["default"].weight.data, module.lora_B["default"].weight.data
                    made = ManyLora(module.base_layer, a, b, module.scaling["default"], trainings).to(a.device)
                    setattr(parent, name, made)
                    self.layers.append(made)
        self.model = adapted.get_base_model()
        self.model.requires_grad_(False)
        self.parameters = [each.requires_grad_() for layer in self.layers for each in (layer.a, layer.b)]
        self.model.train()  # no dropout in these models

    @property
    def device(self) -> Any:
        return self.model.device

    def freeze(self) -> None:
        """Round the adapters as they are now, in place, so that a captured graph uses the new values."""
        for layer in self.layers:
            with torch.no_grad():
                if layer.frozen is None:
                    dtype = self.model.dtype
                    layer.frozen = layer.a.detach().to(dtype, copy=True), layer.b.detach().to(dtype, copy=True)
                for rounded, exact in zip(layer.frozen, (layer.a, layer.b), strict=True):
                    rounded.copy_(exact)

    def clip(self, most: float) -> torch.Tensor:
        """Scale the gradients of each training to a norm of at most `most`. Returns the norms."""
        squares = torch.stack([each.grad.flatten(1).pow(2).sum(1) for each in self.parameters if each.grad is not None])
        norms = squares.sum(0).sqrt()
        factors = (most / (norms + 1e-6)).clamp(max=1.0)
        for each in self.parameters:
            if each.grad is not None:
                each.grad.mul_(factors.view(-1, *[1] * (each.dim() - 1)))
        return norms

    def log_probabilities(
        self, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[Sequence[int]]], temperature: float = 1.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The log-probability of each token of several answers to one question of each training, and a mask of the
        tokens that are there; both of shape (trainings, answers, tokens). The prompt is read once for all answers."""
        many, longest = len(answers[0]), max(len(each) for some in answers for each in some)
        room = max(map(len, prompts))
        length = -(-(room + many * longest) // 8) * 8
        ids = torch.zeros((len(prompts), length), dtype=torch.long)
        places, parts = torch.zeros_like(ids), torch.full_like(ids, -1)
        mask = torch.zeros((len(prompts), many, longest), dtype=torch.bool)
        before = torch.zeros((len(prompts), many, longest), dtype=torch.long)
        for row, (prompt, some) in enumerate(zip(prompts, answers, strict=True)):
            ids[row, : len(prompt)] = torch.tensor(prompt)
            places[row, : len(prompt)] = torch.arange(len(prompt))
            parts[row, : len(prompt)] = 0
            for number, answer in enumerate(some):
                begin = room + number * longest
                ids[row, begin : begin + len(answer)] = torch.tensor(answer)
                places[row, begin : begin + longest] = len(prompt) + torch.arange(longest)
                parts[row, begin : begin + len(answer)] = number + 1
                mask[row, number, : len(answer)] = True
                before[row, number] = begin - 1 + torch.arange(longest)
                before[row, number, 0] = len(prompt) - 1
        ids, places, parts, mask, before = (each.to(self.device) for each in (ids, places, parts, mask, before))
        seen = self._states(ids, places, parts)
        rows = torch.arange(len(prompts), device=self.device).view(-1, 1, 1)
        logits = self.model.lm_head(seen[rows, before]).float() / temperature
        said = ids[:, room : room + many * longest].view(len(prompts), many, longest)
        chosen = logits.gather(-1, said.unsqueeze(-1)).squeeze(-1)
        return chosen - logits.logsumexp(-1), mask

    def _states(self, ids: torch.Tensor, places: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
        """The last hidden states. A token sees earlier ones of the prompt, part 0, and of its own part."""
        theirs, own = parts[:, None, None, :], parts[:, None, :, None]
        length = ids.shape[1]
        earlier = torch.ones((length, length), dtype=torch.bool, device=self.device).tril()
        sees = earlier & (theirs >= 0) & ((theirs == 0) | (theirs == own))
        sees |= torch.eye(length, dtype=torch.bool, device=self.device)  # a row that sees nothing would be NaN
        found = self.model.model(
            input_ids=ids, attention_mask={"full_attention": sees}, position_ids=places, use_cache=False
        )
        states: torch.Tensor = found.last_hidden_state
        return states


class Speaker:
    """Draws answers: `each` of them to every one of `questions` questions of each training, all at once. Everything has
    a fixed size, so that on a GPU one graph makes the step from a token to the next."""

    def __init__(self, adapters: ManyAdapters, questions: int, each: int, longest_prompt: int, longest: int) -> None:
        self._adapters, self._questions, self._each = adapters, questions, each
        self._prompt, self._longest = longest_prompt, longest
        model, config = adapters.model, adapters.model.config
        self._asked = adapters.trainings * questions
        self._rows = self._asked * each
        self._heads, self._shared = config.num_attention_heads, config.num_key_value_heads
        self._size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        layers, device = config.num_hidden_layers, adapters.device

        def room(rows: int, length: int) -> torch.Tensor:
            shape = (layers, 2, rows, self._shared, length, self._size)
            return torch.zeros(shape, dtype=model.dtype, device=device)

        self._read, self._said = room(self._asked, longest_prompt), room(self._rows, longest)
        self._hidden = torch.zeros((self._asked, 1, 1, longest_prompt), dtype=model.dtype, device=device)
        self._token = torch.zeros((self._rows, 1), dtype=torch.long, device=device)
        self._place = torch.zeros((self._rows, 1), dtype=torch.long, device=device)
        self._at = torch.zeros((1,), dtype=torch.long, device=device)
        self._steps = torch.arange(longest, device=device)
        self._graph: Any = None
        self._logits: Any = None

    @torch.no_grad()
    def speak(
        self, prompts: Sequence[Sequence[Sequence[int]]], end: int, temperature: float = 1.0, at_once: int = 8
    ) -> list[list[list[list[int]]]]:
        """The answers, by training, question and number. prompts: by training and question, which are read `at_once` of
        each training at a time. An answer ends with the token `end`, or at the longest length."""
        self._adapters.freeze()
        lengths = torch.tensor([[len(each) for each in some] for some in prompts], device=self._adapters.device)
        first = self._read_prompts(prompts, lengths, at_once)
        every = lengths.view(-1).repeat_interleave(self._each)
        logits = first.repeat_interleave(self._each, 0)
        said = torch.full((self._rows, self._longest), end, device=self._adapters.device)
        ended = torch.zeros(self._rows, dtype=torch.bool, device=self._adapters.device)
        for step in range(self._longest):
            token = drawn(logits, temperature).masked_fill(ended, end)
            said[:, step] = token
            ended |= token == end
            if step + 1 == self._longest or (step % 8 == 7 and bool(ended.all())):
                break
            self._token.copy_(token[:, None])
            self._place.copy_((every + step)[:, None])
            self._at.fill_(step)
            logits = self._next()
        rows = [row[: row.index(end) + 1] if end in row else row for row in said.tolist()]
        grouped = iter(rows)
        return [[[next(grouped) for _ in range(self._each)] for _ in some] for some in prompts]

    def _read_prompts(
        self, prompts: Sequence[Sequence[Sequence[int]]], lengths: torch.Tensor, at_once: int
    ) -> torch.Tensor:
        """Keep the keys and values of the prompts. Returns what the model says to their last tokens."""
        trainings, model = self._adapters.trainings, self._adapters.model
        places = torch.arange(self._prompt, device=self._adapters.device)
        missing = places >= lengths.view(-1, 1, 1, 1)
        self._hidden.zero_().masked_fill_(missing, torch.finfo(self._hidden.dtype).min)
        kept = self._read.view(*self._read.shape[:2], trainings, self._questions, *self._read.shape[3:])
        found = []
        for begin in range(0, self._questions, at_once):
            some = [row[begin : begin + at_once] for row in prompts]
            longest = max(len(each) for row in some for each in row)
            ids = torch.zeros((trainings, len(some[0]), longest), dtype=torch.long)
            for at, row in enumerate(some):
                for number, each in enumerate(row):
                    ids[at, number, : len(each)] = torch.tensor(each)
            told = model.model(input_ids=ids.view(-1, longest).to(self._adapters.device), use_cache=True)
            for layer, cached in enumerate(told.past_key_values.layers):
                for part, values in enumerate((cached.keys, cached.values)):
                    shaped = values.view(trainings, -1, *values.shape[1:])
                    kept[layer, part, :, begin : begin + at_once, :, :longest] = shaped
            states = told.last_hidden_state.view(trainings, -1, longest, told.last_hidden_state.shape[-1])
            last = (lengths[:, begin : begin + at_once] - 1)[..., None, None].expand(-1, -1, 1, states.shape[-1])
            found.append(states.gather(2, last).squeeze(2))
        said: torch.Tensor = model.lm_head(torch.cat(found, 1).view(self._asked, -1))
        return said

    def _next(self) -> torch.Tensor:
        """What the model says to the last tokens."""
        if self._adapters.device.type != "cuda":
            return self._step()
        if self._graph is None:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                for _ in range(2):
                    self._step()
            torch.cuda.current_stream().wait_stream(aside)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._logits = self._step()
        self._graph.replay()
        logits: torch.Tensor = self._logits
        return logits

    def _step(self) -> torch.Tensor:
        model = self._adapters.model.model
        states = model.embed_tokens(self._token)
        cos, sin = model.rotary_emb(states, self._place)
        later = torch.zeros_like(self._steps, dtype=states.dtype).masked_fill(self._steps > self._at, -math.inf)
        for number, layer in enumerate(model.layers):
            own, asked = layer.self_attn, layer.input_layernorm(states)
            q, k, v = (
                project(asked).view(self._rows, -1, 1, self._size) for project in (own.q_proj, own.k_proj, own.v_proj)
            )
            q, k = turned(q, cos, sin), turned(k, cos, sin)
            keys, values = self._said[number]
            keys.index_copy_(2, self._at, k)
            values.index_copy_(2, self._at, v)
            seen = self._attend(q, *self._read[number], keys, values, later)
            states = states + own.o_proj(seen.view(self._rows, 1, -1))
            states = states + layer.mlp(layer.post_attention_layernorm(states))
        logits: torch.Tensor = self._adapters.model.lm_head(model.norm(states))[:, 0]
        return logits

    def _attend(self, q: Any, read: Any, read_values: Any, keys: Any, values: Any, later: Any) -> torch.Tensor:
        """Attention of one token of each answer to the prompt, whose keys and values answers share, and to its own
        answer."""
        shared, group, size = self._shared, self._heads // self._shared, self._size
        scale = size**-0.5
        apart = q.view(self._rows, shared, group, size)
        together = apart.view(self._asked, self._each, shared, group, size).transpose(1, 2)
        together = together.reshape(self._asked, shared, self._each * group, size)
        to_prompt = torch.matmul(together, read.transpose(-1, -2)) * scale + self._hidden
        to_prompt = to_prompt.view(self._asked, shared, self._each, group, -1).transpose(1, 2)
        to_prompt = to_prompt.reshape(self._rows, shared, group, -1)
        to_own = torch.matmul(apart, keys.transpose(-1, -2)) * scale + later
        weights = torch.cat((to_prompt, to_own), -1).float().softmax(-1).to(q.dtype)
        of_prompt, of_own = weights.split((self._prompt, self._longest), -1)
        of_prompt = of_prompt.reshape(self._asked, self._each, shared, group, self._prompt).transpose(1, 2)
        seen = torch.matmul(of_prompt.reshape(self._asked, shared, self._each * group, self._prompt), read_values)
        seen = seen.view(self._asked, shared, self._each, group, size).transpose(1, 2)
        return seen.reshape(self._rows, shared, group, size) + torch.matmul(of_own, values)


def drawn(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """A token of each row, by its probability."""
    noise = torch.empty(logits.shape, device=logits.device).exponential_()
    return (logits.float() / temperature - noise.log()).argmax(-1)


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions."""
    first, second = x.chunk(2, -1)
    return x * cos.unsqueeze(1) + torch.cat((-second, first), -1) * sin.unsqueeze(1)
