"""Parts of replies: thoughts are taken out, objects and numbers are read strictly."""

import pytest

from palate.llm.replies import Unparsed, number, read_object, without_thoughts


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A", "A"),
        ("<think>hm</think>A", "A"),
        ("x<thinking>a</thinking>y<Thought >b</ thought>z", "xyz"),
        ("< REASONING effort='low'>a\nb</ReAsoning>\nB", "\nB"),
        ("so I think B</think>A", "A"),
        ("one</think>two</think>three", "three"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<think/>d", "d"),
        ("[THINK]a[/THINK]d", "d"),
        ("<thinker>A</thinker>", "<thinker>A</thinker>"),
        ("<think> maybe [[A]]", None),
        ("<think>a</think>b<think>c", None),
        ("<think>a<think>b</think>c", None),
        ("[think] maybe [[A]]", None),
    ],
)
def test_thoughts_are_taken_out_and_an_open_one_is_no_answer(text: str, left: str | None) -> None:
    assert without_thoughts(text) == (Unparsed("open thought") if left is None else left)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure, here you go:\n```json\n{"a": "0.75"}\n```\nHope this helps!', {"a": "0.75"}),
        ('json\n\n{"a": 1}\njson', {"a": 1}),
        ('{"a": 1} then {"a": 2}', {"a": 2}),
        ('{"a": "}{", "b": "\\"{"}', {"a": "}{", "b": '"{'}),
        ('for {x in X} and \\{y\\}: {"a": {"b": 2}} where {z}', {"a": {"b": 2}}),
        ('an { alone, then {"a": 1}', {"a": 1}),
        ('<think>{"a": 1}</think>{"a": 2}', {"a": 2}),
        ("{}", {}),
        ("nothing", "no JSON object"),
        ("{x}", "no JSON object"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": NaN, "b": {"a": 1}}', "NaN is not JSON"),
        ('{"a": 1, "a": 1}', "a key given twice"),
        ("{'a': 1}", "broken JSON"),
        ("{a: 1}", "broken JSON"),
        ('{"a": {"b": 1},}', "broken JSON"),
        ('{"a": 1, "b": {"a": 2}', "an object that is not closed"),
        ('{"a": 1} {"a": "it is 5" long"}', "an object that is not closed"),
        ('[{"a": 1}, {"a": 2}]', "a list, not one object"),
        ('{"a": 1}, {"a": 2}', "a list, not one object"),
        ('<think>{"a": 1}', "open thought"),
        ('{"a": ' + "9" * 5000 + "}", "broken JSON"),
        ('{"a": ' * 2000 + "1" + "}" * 2000, "broken JSON"),
    ],
)
def test_the_last_object_is_read_strictly(text: str, value: object) -> None:
    found = read_object(text)
    assert (found.reason if isinstance(found, Unparsed) else found) == value


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (0.75, 0.75),
        ("0.75", 0.75),
        (" 1 ", 1.0),
        (0, 0.0),
        ("-0.5", "outside the scale"),
        (2, "outside the scale"),
        (10**400, "outside the scale"),
        ("9" * 5000, "outside the scale"),
        (float("nan"), "outside the scale"),
        (float("inf"), "outside the scale"),
        (True, "not a number"),
        (None, "not a number"),
        ([1], "not a number"),
        ("", "not a number"),
        ("nan", "not a number"),
        ("0,5", "not a number"),
        ("1/1", "not a number"),
        ("٠", "not a number"),
        ("1_0", "not a number"),
    ],
)
def test_a_number_is_a_number_on_the_scale(value: object, got: object) -> None:
    found = number(value, 0, 1)
    assert (found.reason if isinstance(found, Unparsed) else found) == got
