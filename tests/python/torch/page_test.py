"""The snippets of docs/torch.md."""

import os
import pathlib
import tempfile
import unittest

import torch

import zoo

SOURCE = pathlib.Path(os.environ["STRETTO_SOURCE"])


class Page(unittest.TestCase):
    def test_snippets_of_the_page_run(self):
        page = (SOURCE / "docs/torch.md").read_text().split("```")
        snippets = [block.removeprefix("python\n") for block in page[1::2] if block.startswith("python\n")]
        self.assertGreater(len(snippets), 2)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = os.getcwd()
        os.chdir(folder.name)
        self.addCleanup(os.chdir, before)
        module, batch = zoo.make("nanogpt", torch.float32)
        names = {"GPT": lambda: module, "batch": batch, "loader": [batch] * 2}
        for snippet in snippets:
            if "import transformers" in snippet or "transformers" in snippet.split("\n")[0]:
                try:
                    import transformers  # noqa: F401
                except ImportError:
                    continue
            exec(compile(snippet, "docs/torch.md", "exec"), names)


if __name__ == "__main__":
    unittest.main()
