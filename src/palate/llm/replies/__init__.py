"""Strict readers of what language models reply: `str -> Parsed | Unparsed`, pure, and never raising.

They stand between a stored call and what is decided from it; the caller keeps the raw text, so that another reader can
be tried later without another call. A reply that cannot be read is never a verdict: nothing is guessed, nothing is
taken from thoughts, and nothing from quotations. In short:

- The last verdict in the agreed place counts. If that one is no allowed token, or if its sentence holds two, the reply
  is unparsed; an earlier verdict is not used in its place.
- Fenced blocks, cited lines, passages in quotes and elements such as `<quote_A>` are somebody else's words.
- JSON may stand in a fence or between words; in itself it is strict.

`PAIR_PARSERS` reads A, B or tie in the agreed place of each form:

- `verdict`: a JSON object with "verdict", or the last `Verdict: X`, `Final verdict: X`, `Result: X` (X being the rest
  of the line, or the line below), or `[[X]]` at the end of a line or sentence. A line after the object decides; an
  object after a line must agree with it.
- `brackets`: the last `[[A]]`, `[[B]]` or `[[C]]` (a tie); `A]]` at the very beginning completes a prompt that ends
  with `[[`.
- `arena`: the last of `[[A>>B]]`, `[[A>B]]`, `[[A=B]]`, `[[B>A]]`, `[[B>>A]]`.
- `letter`: the first token: A, B, C (a tie), tie, 1 or 2, alone on its line or before `.`, `:` or `(`.
- `answer_tag`: the last `<answer>[[A]]</answer>`.
- `output_ab`: the last sentence `Output (a) is better`, with a short lead-in or a reason; or `Output (a)` as the whole
  reply. A heading, a condition and somebody else's opinion do not decide.
- `two_scores`: two numbers, and nothing else, on the first line; equal is a tie.

X is one of: A, B, tie, "Answer B" (also response, output, assistant, option, with or without round brackets),
"B is better", "Answer B is better" (clearly, slightly, much, significantly), "it is a tie"; in any case, with quotes,
brackets, markdown or a full stop. "Both" and "neither" are no verdicts.

`SCORE_PARSERS` reads a number on the scale low…high:

- `score`: a JSON object with "score", or the last `Score: 7` or `Score: 8/10`, or 7 or 8/10 as the whole reply; a scale
  that is named must be the one asked for.
- `rating`: the last `[[7]]`.
- `match_score`: a JSON object with "match_score", a whole number; or the number, or `match_score: 1`, as the whole
  reply.

What 436 public replies of 18 families give:

| family | parser | n | read | unparsed | what is not read |
|---|---|---|---|---|---|
| lampqa_match_score | match_score | 48 | 40 | 8 | numbers in a loop or among debris |
| bracket_AB_plus_certainty | brackets | 73 | 73 | 0 | |
| bracket_AB_plus_certainty_odd | brackets | 1 | 0 | 1 | prose |
| mtbench_pair | brackets | 26 | 26 | 0 | |
| truncated_no_verdict | brackets | 18 | 0 | 18 | cut before the verdict |
| arena_hard | arena | 25 | 25 | 0 | |
| amel_one_token | letter | 102 | 62 | 40 | prose (38), a digit that is not the first token or not alone (2) |
| autoj_gpt4_pair | letter | 8 | 8 | 0 | |
| rm_r1_answer_tag | answer_tag | 7 | 7 | 0 | |
| llmbar_short | output_ab | 14 | 14 | 0 | |
| llmbar_cot | output_ab | 21 | 21 | 0 | |
| llmbar_no_verdict | output_ab | 24 | 0 | 24 | neither, refused, cut, empty, a heading, words outside the form (3) |
| vicuna_two_scores | two_scores | 38 | 20 | 18 | scores somewhere below the first line |
| mtbench_single | rating, 1–10 | 7 | 7 | 0 | |
| autoj_critique | rating, 1–10 | 10 | 9 | 1 | cut before the rating |
| alpaca_ranking_list | verdict | 1 | 0 | 1 | a ranking, for which there is no parser here |
| alpaca_cot_json | verdict | 6 | 0 | 6 | the same |
| ifrb_checklist | verdict | 7 | 0 | 7 | one verdict for each requirement, none for a pair |

Of the 69 kinds of reply that LaMP-QA's own reader rejected (82,963 replies), `match_score` reads 56 (82,946).
"""

from palate.llm.replies.aspects import read_aspects
from palate.llm.replies.objects import number, read_object
from palate.llm.replies.outcome import Choice, PairParser, Parsed, ScoreParser, Unparsed
from palate.llm.replies.pairs import PAIR_PARSERS
from palate.llm.replies.scores import SCORE_PARSERS
from palate.llm.replies.thoughts import without_thoughts

__all__ = [
    "PAIR_PARSERS",
    "SCORE_PARSERS",
    "Choice",
    "PairParser",
    "Parsed",
    "ScoreParser",
    "Unparsed",
    "number",
    "read_aspects",
    "read_object",
    "without_thoughts",
]
