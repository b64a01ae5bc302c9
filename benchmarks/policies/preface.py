"""The preface of POLICIES.md: the method, the findings, the changes and the attempts."""

from __future__ import annotations

from policies.report import FEWEST, RESAMPLES

PREFACE = f"""# Policies over recorded sessions

Written by `WINDOWPANE_SESSIONS_DIR=… python benchmarks/bench_policies.py`; the same sessions give the same text.

Each session is managed again under every policy and preset, and sent unmanaged under two baselines: truncation
(drop the oldest groups until the call fits, keep the system prompt) and keeping the last N groups. What people,
tools and the model wrote is taken from the recording; a policy cannot change what the recorded agent did next.
No language model is configured, so summaries are extractive. Only sessions that fill a window to where the
default starts to evict, and whose system prompt and tools fit it, are counted there.

- Overflows: calls that would leave no room for their output. A baseline that overflows has failed at that call;
  its regret is counted as if the call had been made and everything in it seen, which favors it. So the
  sessions in which the matched baseline never overflows are also compared by themselves.
- Cost: tokens at the price of fresh input, what the call before sent as a prefix at 0.10, all else at 1.25;
  dollars by list price, where the model is known.
- Probe fidelity: share of the names in removed content that was still visible; a handle does not count.
- Regret: removed content was fetched again (same call or same digest), or a rare identifier of it that no visible
  content contained was used by the recorded agent, within 20 turns. "Of all content" divides by
  everything the session ever held, so that removing more useless content does not lower it; the default is
  judged by it.
- Two other readings of regret are shown beside it against the baselines. A name in a call or a placeholder is
  not visible content, one in a summary is; "names in summaries not counted" counts neither. Content that does
  not fit the window by itself is not a regret, because no policy can keep it and a baseline that sends it
  overflows; "content larger than the window counted" counts it all the same. Where a verdict changes with the
  reading, it depends on that reading only. In a session in which the matched baseline never overflows no
  content was larger than the window, so there the second of them changes nothing.
- Differences are default less other, by session; the interval is 90% of {RESAMPLES:,} bootstrap samples of the
  sessions. Inconclusive: it includes zero, or fewer than {FEWEST} sessions.
- "All windows" is the mean over every session in every window it fills; there a session is drawn with all of
  its windows. It was added last, when the values of each window were known.
- Tokens matched: a baseline's setting is swept until it sends what the default sends; against a preset the
  default's thresholds are swept until it sends what the preset sends. Where no setting comes within 2%, between
  the two nearest; settings out of reach are omitted. "As it is" compares both at their own settings. The best
  preset is the one of least regret among those that overflow least, chosen on the sessions it is compared on,
  which favors it. Presets that count tokens by characters may overflow here although they do not by their own
  count.

## Halves

Sessions are sorted by their tokens and paired with their neighbor; a digest of a name decides which of a pair
is for tuning and which is reported. An earlier split by digest alone left one session of the reported half that
filled 32k. Thresholds had been tried on that split, with none adopted, so sessions reported here had been seen
then. Few sessions fill the larger windows by themselves; there recordings are joined end to end, the largest
first, no session twice in a window, which no agent ever was.

## Why the default regretted, and what was changed

From every regret of the default in the tuning half, in 8k and 32k, with its cause and the content that
truncation still sent. Almost all were names, not content fetched again.

- Most names taken from content several turns old had been used by the agent before, and the summary did not
  keep them. It ranked names by their speaker, took words with slashes (`and/or`) for paths and its own headings
  for facts, repeated a sentence in two sections, and carried all that on. Now the names removed with the
  conversation are listed in the order in which the agent used them last, then those it has not used yet; a
  summary may take 14% of a small window instead of 8%, and placeholders list names in use.
- An 8k window was evicted from half of it, because its reserve is a quarter already and its zones start earlier
  too. Small windows still warn earlier, but are reduced where others are: from 0.75 down to 0.60.
- The names of a tool's arguments (`"command":`) counted as uses of whatever held the word: of the engine, whose
  lifetimes they renewed, and of this measure. They no longer do, under any setup.
- Content larger than the window counted against every setup, as none can hold it. This was found in the
  reported half, after it had been looked at once; the reading that counts it is still shown beside the other.
- Later the facts that stay in the window were measured as well (COMPACTOR.md), and the default was changed for
  them on that benchmark's tuning half: compaction from 80%, not wherever an eviction falls short; an eviction
  only where it is enough by itself; summaries of 25% to 35%. The tables below are of that default.
- Not changed: a first use of a name that was removed after one look; results cut when they come in, because they
  are larger than half of usable; instructions injected at the beginning, which keep their place for 20 turns
  while truncation drops them first (in one session a fifth of all content).

Tried on the tuning half and not adopted, for no gain at the same tokens over windows from 8k to 48k: progressive
summarization before eviction or before compaction; a compaction that retains as much as the target allows, or a
tail of 40% or 60% of usable; summaries of 10%, 18% or 25%; more of a summary for names; excerpts of results with
the lines that name what is in use, in the place of placeholders; expired messages before results; eviction down
to 0.7 or 0.9 of where it starts; zones at 0.45/0.70/0.88 or 0.50/0.80/0.95; idleness for recency, and heavier
references. Two rounds: the mechanisms with the size of summaries and the zones, then weights and the choice of
names.
"""
