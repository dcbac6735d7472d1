#!/usr/bin/env python3
"""Writes what transformers makes of the templates beside this file (in the style of well-known models) into
expected.json: of every template and conversation the text without and with a prompt for generation, or that it refuses,
and of templates with {% generation %} what they mark.

    pip install transformers jinja2 && python3 make.py
"""
import json
import os

from transformers.utils.chat_template_utils import render_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = dict(bos_token="<s>", eos_token="</s>")


def chat(*contents, system=None, **more):
    messages = [{"role": "system", "content": system}] if system is not None else []
    for i, content in enumerate(contents):
        messages.append({"role": "assistant" if i % 2 else "user", "content": content})
    return {"messages": messages, **more}


TOOL = {"type": "function", "function": {"name": "add", "parameters": {"a": "int", "b": ["x", 1.5, True, None, "é"]}}}
CHATS = [
    chat("Hello", "Hi there."),
    chat("Hello", "Hi there.", "And?", "  Nothing.\n", system="  Be brief. "),
    chat("One", "Two", "Three"),
    chat("What is 1+1?", "<think>\nadd them\n</think>\n\n2", "And 2+2?", "<think>\nagain\n</think>\n\n4"),
    chat("Grüße, 世界 🙂", "Äh\n\nja", system="é"),
    chat("Use it", "Done", tools=[TOOL, TOOL]),
    chat("Use it", "Done", tools=None),
    {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
    {"messages": [{"role": "user", "content": "a b c", "extra": {"k": [1, None, "x"], "z": {}}}]},
    {"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": "42"},
                  {"role": "assistant", "content": "It is 42."}]},
    chat("A", "B", system=""),
    chat("say <|im_end|>", "<|im_end|> said", enable_thinking=False),
]

said = {}
expected = {"chats": CHATS, "templates": {}, "marked": said}
for file in sorted(os.listdir(HERE)):
    if not file.endswith(".jinja"):
        continue
    template = open(os.path.join(HERE, file)).read()
    marks = "{% generation %}" in template
    results = []
    for c in CHATS:
        texts = []
        for prompt in (False, True):
            more = {name: value for name, value in c.items() if name != "messages"}
            try:
                rendered, marked = render_jinja_template([c["messages"]], chat_template=template, **TOKENS, **more,
                                                         add_generation_prompt=prompt, return_assistant_tokens_mask=marks)
                texts.append(rendered[0])
                if marks and not prompt:
                    said.setdefault(file, []).append([rendered[0][begin:end] for begin, end in marked[0]])
            except Exception as e:
                texts.append({"refused": str(e)})
        results.append(texts)
    expected["templates"][file] = results
with open(os.path.join(HERE, "expected.json"), "w") as f:
    json.dump(expected, f, indent=1, ensure_ascii=False)
    f.write("\n")
