"""Axes as products of atoms. Needs no PyTorch."""

import sys
import unittest

from stretto.torch import atoms
from stretto.torch.atoms import (
    NoCommonCut,
    RowsAreCut,
    axis,
    cut,
    flat,
    hint,
    register,
    regroup,
    root,
    size_of,
    sizes_of,
    split,
    twin,
    unify,
)


class Axes(unittest.TestCase):
    def test_no_torch_is_needed(self):
        self.assertNotIn("torch", sys.modules)

    def test_one_has_no_atoms(self):
        self.assertEqual(axis(1), [])
        self.assertEqual(sizes_of(axis(6)), [6])
        self.assertEqual(size_of(axis(2) + axis(5)), 10)

    def test_a_cut_inside_of_an_atom_splits_it(self):
        wide = axis(24)
        leading, rest = cut(wide, 4)
        self.assertEqual((sizes_of(leading), sizes_of(rest), sizes_of(wide)), ([4], [6], [4, 6]))

    def test_a_cut_between_atoms_splits_nothing(self):
        wide = axis(4) + axis(6)
        leading, rest = cut(wide, 4)
        self.assertIs(leading[0], root(wide[0]))
        self.assertIs(rest[0], root(wide[1]))

    def test_no_common_factors(self):
        wide = axis(6)
        cut(wide, 2)
        with self.assertRaises(NoCommonCut):
            cut(wide, 3)

    def test_rows_are_not_cut(self):
        with self.assertRaises(RowsAreCut):
            cut(axis(6, rows=True), 3)

    def test_parts_of_one_are_parts_of_what_it_was_unified_with(self):
        a, b = axis(24), axis(24)
        self.assertTrue(unify(a, b))
        cut(a, 4)
        self.assertEqual(sizes_of(b), [4, 6])
        self.assertEqual([root(x) for x in flat(a)], [root(x) for x in flat(b)])

    def test_axes_of_other_cuts_are_refined(self):
        a, b = axis(2) + axis(12), axis(6) + axis(4)
        self.assertTrue(unify(a, b))
        self.assertEqual(sizes_of(a), [2, 3, 4])
        self.assertEqual(flat(a), flat(b))

    def test_what_has_no_common_refinement_stays_apart(self):
        a, b = axis(2) + axis(3), axis(3) + axis(2)
        self.assertFalse(unify(a, b))
        self.assertEqual((sizes_of(a), sizes_of(b)), ([2, 3], [3, 2]))


class Law(unittest.TestCase):
    """No tensor has an atom twice."""

    def test_a_square_stays_two_dims(self):
        out, into = axis(8), axis(8)
        register([out, into], 1)
        self.assertFalse(unify(out, into))
        self.assertIsNot(root(out[0]), root(into[0]))

    def test_through_others(self):
        a, b, c = axis(8), axis(8), axis(8)
        register([a, b], 1)
        self.assertTrue(unify(b, c))
        self.assertFalse(unify(c, a))

    def test_twins_are_split_alike(self):
        out, into = axis(8), axis(8)
        register([out, into], 1)
        unify(out, into)
        cut(into, 2)
        self.assertEqual(sizes_of(out), [2, 4])
        cut(flat(into)[1:], 2)
        self.assertEqual(sizes_of(out), [2, 2, 2])

    def test_a_twin_that_is_cut_in_another_way_keeps_its_own(self):
        a = axis(6)
        b = twin(a)
        split(b[0], 3)
        self.assertEqual((sizes_of(a), sizes_of(b)), ([3, 2], [3, 2]))

    def test_parts_are_of_the_tensors_of_the_whole(self):
        a = axis(8)
        register([a, axis(3)], 1)
        cut(a, 2)
        self.assertTrue(all(x.tensors == {1} for x in flat(a)))

    def test_an_atom_twice_is_noticed(self):
        a = axis(4)
        with self.assertRaises(AssertionError):
            register([a, a], 1)


class Views(unittest.TestCase):
    def test_the_same_atoms_in_other_axes(self):
        batch, seq, wide = axis(6, rows=True), axis(10), axis(24)
        heads = regroup([batch, seq, wide], (6, 10, 4, 6))
        self.assertEqual([sizes_of(a) for a in heads], [[6], [10], [4], [6]])
        rows = regroup(heads, (60, 24))
        self.assertEqual([sizes_of(a) for a in rows], [[6, 10], [4, 6]])
        self.assertEqual(regroup(rows, (6, 1, 10, 24))[1], [])

    def test_hints_and_rows_go_along(self):
        a, b = axis(6), axis(6, rows=True)
        hint(a, "x", 3)
        unify(a, b)
        self.assertTrue(flat(a)[0].rows)
        self.assertEqual(flat(b)[0].hints, [(3, "x")])

    def test_atoms_that_came_first_have_smaller_numbers(self):
        self.assertLess(atoms.Atom(2).number, atoms.Atom(2).number)


if __name__ == "__main__":
    unittest.main()
