#!/usr/bin/env python3
"""Compares scripts/render_chats with transformers: texts, refusals and what {% generation %} marks, of the templates
beside this file and of those in the folders that are named, for the conversations of expected.json and a few more.

    against_transformers.py [FOLDER...]        (needs the package transformers; without it ends with 77)
"""
import datetime
import glob
import json
import os
import re
import subprocess
import sys

try:
    from transformers.utils import chat_template_utils, logging
    from transformers.utils.chat_template_utils import render_jinja_template
except ImportError as e:
    print(e)
    sys.exit(77)
logging.set_verbosity_error()


class Midnight(datetime.datetime):
    """The hour of a run's date: a day is all that a template hears of it."""

    @classmethod
    def now(cls, zone=None):
        return cls.combine(datetime.date.today(), datetime.time(), zone)


chat_template_utils.datetime = Midnight

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = open(os.path.join(HERE, "../../../scripts/render_chats")).read()
TOKENS = dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
TOOL = {"type": "function", "function": {"name": "add", "description": "adds", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer", "description": "x"}}, "required": ["a"]}}}
CALL = {"type": "function", "id": "abcdefghi", "function": {"name": "add", "arguments": {"a": 1}}}


def turns(count):
    return [{"role": ("user", "assistant")[i % 2], "content": f"turn {i}"} for i in range(count)]


CHATS = json.load(open(os.path.join(HERE, "expected.json")))["chats"] + [
    {"messages": turns(12)},
    {"messages": [{"role": "user", "content": "x", "thinking": "no"},
                  {"role": "assistant", "content": "y", "reasoning": "because"}]},
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [CALL]},
                  {"role": "tool", "content": "2", "tool_call_id": "abcdefghi", "name": "add"},
                  {"role": "assistant", "content": "It is 2.", "reasoning_content": "hm"}], "tools": [TOOL]},
]


def ours(template):
    first = dict(template=template, tokens=TOKENS, date=datetime.date.today().isoformat(), seconds=20, bytes=1 << 30)
    lines = [first] + [dict(chat=c, prompt=p) for c in CHATS for p in (False, True)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=text.encode(), stdout=subprocess.PIPE)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return answers[1:] if len(answers) > 1 else answers * 2 * len(CHATS)


def theirs(template, chat, prompt, marks):
    more = {name: value for name, value in chat.items() if name != "messages"}
    texts, marked = render_jinja_template([chat["messages"]], chat_template=template, add_generation_prompt=prompt,
                                          return_assistant_tokens_mask=marks, **TOKENS, **more)
    return texts[0], [texts[0][begin:end] for begin, end in marked[0] if begin < end] if marks and not prompt else None


templates = [path for folder in [HERE] + sys.argv[1:] for path in sorted(glob.glob(os.path.join(folder, "*.jinja")))]
texts = refused = masks = 0
different = []
for path in templates:
    template = open(path).read()
    marks = bool(re.search(r"\{%-?\s*generation\s*-?%\}", template))
    answers = iter(ours(template))
    for chat in CHATS:
        for prompt in (False, True):
            mine = next(answers)
            try:
                text, marked = theirs(template, chat, prompt, marks)
            except Exception as e:
                refused += 1
                if "parts" in mine:
                    different.append(f"{path}: refused with {e}, and here it is {mine}")
                continue
            texts += 1
            masks += marked is not None
            if "parts" not in mine or "".join(mine["parts"]) != text or marked not in (None, mine["parts"][1::2]):
                different.append(f"{path}: {text!r} with {marked}, and here it is {mine}")
print(f"{len(templates)} templates: {texts} texts, {masks} of them with marks; {refused} are refused by both")
print("\n".join(different))
sys.exit(1 if different else 0)
