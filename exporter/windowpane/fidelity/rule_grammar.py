"""The grammar by which a sentence states a rule, in English, German, French, Spanish, Chinese and Japanese.

A sentence states a rule if one of its clauses forbids, obliges, limits or prefers, and is addressed to the agent:
`never push`, `you must not …`, `commits must be signed`. In system prompts and memory files a plain imperative
does too: what is written there holds for every request. In a message of the user it is a request, and so is a
numbered step of a procedure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple


def _pattern(*alternatives: str, start: bool = False) -> re.Pattern[str]:
    joined = "|".join(alternatives)
    return re.compile(rf"^(?:{joined})" if start else joined, re.IGNORECASE)


def _any_of(words: str) -> str:
    return "|".join(words.split())


Register = Literal["prompt", "instructions", "request"]
"""Kind of a text: a system prompt; a memory file, or a prompt in a message; or any other message of the user."""


class Passage(NamedTuple):
    """A sentence and its place in a list."""

    text: str
    heading: str = ""
    """Heading of the list; empty outside of lists."""
    is_heading: bool = False
    is_item: bool = False
    is_step: bool = False
    """True for a numbered item, a task, and items inside one."""


# -- English ---------------------------------------------------------------------------------------------------

_VERBS: Final = _any_of(
    "accept access achieve act adapt add address adhere adjust aim align allow alphabetize analyze annotate "
    "announce answer append apply approach archive arrange ask assert assign assume attach attempt audit"
    " authenticate "
    "avoid await backup be begin benchmark bias book break bring build bump bundle call cancel capture chain "
    "challenge change chat check choose cite clarify classify clean clear close collect combine comment commit "
    "communicate compare complete compress configure confirm connect consider consult continue convert copy "
    "correct count cover create crop cut declare decline deduplicate default defer define delegate delete "
    "deliver deny deploy derive describe design detect determine diff disable discard discuss dispatch display "
    "divide document dogfood double downgrade download draft drop dump edit educate embed emit emphasize"
    " enable "
    "encode enforce ensure escalate escape establish estimate evaluate examine exclude execute exercise "
    "expand expect explain explore expose express extend extract fail fall favor fetch fill filter finish fix "
    "flag flatten focus follow format forward gate gather generate get give go ground group guide hand handle "
    "help hide highlight honor honour identify ignore implement include increase indent infer inform"
    " initialize "
    "inject inline insert inspect install introduce investigate invoke isolate iterate join keep know label "
    "launch lay lead learn leave let limit link list listen load localize lock log look lower maintain make "
    "manage map mark mask match measure mention merge migrate minimize mock modify monitor move name narrow "
    "negotiate nest normalize note notice notify obey observe obtain offer omit open optimize organize"
    " override "
    "own parallelize paraphrase parse pass paste pause pick pin place plan point post prefer prefix prepare "
    "preserve prevent preview print prioritize proceed process produce promote propose protect provide prune "
    "publish pull push put query quit quote raise reach read realize reason rebase recheck recommend reconcile "
    "record redact redirect reduce refactor refer reflect refuse register reject relay release rely remember "
    "remind remove rename render reorder repeat rephrase replace reply report repro reproduce request require "
    "reserve reset resolve respect respond restart restore restrict retain retry return reuse revert review "
    "revise rework rewrite rotate route run sample sanitize save say scan schedule scope scroll search see"
    " seek "
    "select send separate serve set share shift ship shorten show simplify skim skip slow solve specify spell "
    "spend split squash stage standardize start stash state stay stick stop store strip structure study submit "
    "subscribe substitute suggest summarise summarize supply support suppress surface switch sync synthesize "
    "tag tailor take teach tell test thank think throw tighten toggle trace track transfer transform translate "
    "transmit treat triage trim trust try turn undo unset unwrap update upgrade upload use utilize validate "
    "vary verify wait walk warn watch weigh wire work wrap write yield zip"
)
"""Verbs of instructions. Without those that are as often nouns: `output`, `label`, `point`."""
_CONFIRMATION: Final = r"(?:approval|permission|consent|confirmation|sign-?off|review)"
_HEAD: Final = _pattern(
    r"(?:you )?(?:absolutely |should |must )?never (?!\w+ed\b(?<!\bneed)(?<!\bembed)(?<!\bproceed)"
    r"|\w+[^s\W]s\b|(?:in|on|at|the|an?|by|for|with|as|to|saw|was|were|had|did|got|went|came|made|took|gave"
    r"|found|knew)\b)\w",
    r"(?:you )?(?:do not|don['’]?t) (?:ever )?(?!worry|mind|know|think|see|understand|care|believe|recall|need"
    r"|have|want|forget)\w",
    r"(?:you )?always \w",
    r"(?:you )?(?:must|shall)(?: not)? \w",
    r"(?:strongly )?prefer \w|avoid \w|refrain from |limit (?:yourself|your|the|all|each)\b|stick (?:to|with) ",
    r"under no circumstances|at no point|no exceptions",
    rf"ask (?:me|first|before|the user|for (?:\w+ )?{_CONFIRMATION})\b",
    rf"wait for (?:my|me|the user|(?:\w+ )?{_CONFIRMATION})\b",
    r"check with (?:me|the user)\b|confirm (?:with me )?before\b|stop and ask\b",
    rf"(?:otherwise )?only (?:ever )?(?:{_VERBS})\b",
    rf"(?:{_VERBS}) (?:no (?!longer|one)|nothing )\w|(?:{_VERBS}) (?:(?!is\b|are\b|was\b|were\b)[\w-]+"
    rf" ){{0,2}}only(?: \w|[.!]?$)",
    r"only (?:one|two|three|a single|\d+) \w",
    r"no (?:(?:code|more|other|breaking|further|file|api|additional) )?(?:changes?|edits?|commits?|push(?:es"
    r"|ing)?|comments?|emojis?|new (?:files|features|dependencies)|refactoring)\b",
    start=True,
)
"""The start of a clause that forbids, obliges or limits."""

_AGENT: Final = r"(?:you|(?:sub-?)?agents?|the (?:assistant|agent|model|coordinator|reviewer)|claude|codex)"
_ADDRESSED: Final = _pattern(
    rf"\b(?:{_AGENT}|we) (?:(?:must|shall|should|may) (?:not|never|only|always)|can (?:not|never|only)|will"
    rf" (?:never|only|always))\b",
    rf"\b{_AGENT} (?:must|shall|cannot|can['’]t|mustn['’]t|shouldn['’]t|have to (?:always|ask))\b",
    rf"\b{_AGENT} are (?:not |only )?(?:allowed|permitted|required|expected|forbidden)\b",
    r"\b(?:if|when) you\b.*\byou (?:should|must|need to|have to)\b",
    r"\bi (?:(?:do not|don['’]t|never) want (?:you|any|us|to see)|(?:always )?want you to (?:always|never"
    r"|only))\b",
    r"\bi (?:prefer (?!to )\w+ (?:over|to|instead)|expect you to)\b",
    r"\bwe (?:never|always) (?!\w+ed\b)\w+|\bwe (?:do not|don['’]t) want (?:an?|any) ",
    rf"\bwithout (?:first )?(?:asking|(?:my|the user['’]s|explicit|prior|user) (?:\w+ )?(?:{_CONFIRMATION}"
    rf"|request))\b",
    r"\bunless (?:explicitly |specifically )?(?:i|asked|told|instructed|requested|the user|you are"
    r"|you['’]re)\b",
    r"\botherwise (?:only|never)\b|\b(?:from now on|going forward|every time|each time you|at all times)\b",
)
"""An obligation of the agent anywhere in a sentence."""

_CAPITALS: Final = re.compile(r"\b(?:[Yy]ou|YOU) (?:MUST|SHALL|SHOULD)\b")
"""Words in capitals as in RFC 2119, which oblige also where the small ones advise."""

_IMPERSONAL: Final = _pattern(
    r"\b(?:must|mustn['’]t|shall)\b(?! have (?:been|had))",
    rf"(?:^|[,;:] (?:and |but |then |that )?|\bthat ){_AGENT} (?:should|need to|have to)\b",
    r"(?<!\bwe )(?<!\bi )\bshould (?!i\b|we\b|see\b|work\b|now\b|already\b|have been\b)\w|\bshouldn['’]t\b"
    r"|\b(?:at most|no more than) \w",
    r"\b(?:is|are) (?:strictly )?(?:forbidden|prohibited|not allowed|mandatory|required|blocking|never"
    r" (?:acceptable|allowed|okay|ok|permitted|to be))\b",
    r"\bmay (?:not|only|never)\b|\bneeds? to be\b|\brequires? (?:\w+ )?(?:approval|permission|confirmation)\b"
    r"|\b(?:has|have) to be\b|\b(?:can|may) (?:be \w+ )?only\b",
    r"\bcannot be \w+(?:ed|wn|en)\b|^(?:all|every|each|any) [^.;:]{1,60} (?:requires?|needs?) ",
)
"""An obligation of the work: `commits must be signed`. A user who describes the work writes that too."""

_ALL: Final = _pattern(r"(?:all|every|each|any|no) \w+", start=True)
IMPERATIVE: Final = _pattern(
    rf"(?:{_VERBS})(?:[.!]$| (?!(?:is|are|was|were|of|has|have|means)\b|& )\S)", start=True
)
_GENERAL: Final = _pattern(
    r"(?:keep|ensure|make sure|treat|honor|respect|preserve|limit|cite|favor|stay|stick|maintain|reserve"
    r"|adhere|minimize|be) ",
    start=True,
)
"""Imperatives that are not steps."""
_NEITHER: Final = _pattern(r"no (?!one\b|need\b|longer\b|problem|worr|idea\b)[\w/'’ -]{4,60}[.!]?$", start=True)
_FINITE: Final = _pattern(r"\b(?:is|are|was|were|has|have|can|will|would|had|does|did|needed|found|issues)\b")
_YOU_DO: Final = _pattern(
    r"you (?!(?:and|are|have|can|could|will be|were|may|might|just|did|know|see|want|need|get|had|would|do"
    r"|think|never|\w+ed)\b|['’])\w+",
    start=True,
)
_WHENEVER: Final = _pattern(
    r"(?:please )?(?:when(?:ever)?|before|each time|every time) (?:you|\w+ing|in doubt|unsure|asked)\b",
    start=True,
)
_CONDITIONAL: Final = _pattern(r"(?:please )?(?:if|when(?:ever)?|before|after|unless|until|for|in) ", start=True)

_LABEL: Final = re.compile(
    rf"^(?!(?i:{_VERBS}|never|always|do|don['’]?t|only|no|if|when|before|after|must|you|we|i)\b(?:[^:]+"
    rf" ){{3}})[A-Z][\w /&'’+-]{{1,40}}(?:[:：]| [—–-]) +"
    r"|^[^\W\d_]{2,12}[：:] *(?=[\u3040-\u9fff])"
)
"""A label before a sentence: `Tests: run them first`."""
_CONDITION: Final = _pattern(
    r"(?:(?:and|or|but|so) )?(?:when(?:ever)?|if|before|after|for|in|on|unless|while|during|as|once|until"
    r"|without|by|at|to"
    r"|because|since|with|under|given|where(?:ver)?|even|except|outside|otherwise|wenn|falls|bevor|vor|nach"
    r"|bei|für|si"
    r"|avant|après|pour|quand|lorsque|antes|después|para|cuando)\b[^,:;]{0,140}[,:;] *",
    start=True,
)
_ADVERBS: Final = _pattern(
    r"(?:(?:please|also|then|instead|and|but|so|or|however|again|just|simply|finally|first|additionally"
    r"|therefore|thus"
    r"|ok|okay|yes|no(?=,)|now|btw|actually|strictly|generally|usually|typically|briefly|explicitly|remember"
    r"|important|note"
    r"|bitte|und|aber|also|auch|s['’]il (?:te|vous) pla[iî]t|et|mais|por favor|y|pero)(?:[,:!]|\b) *)+",
    start=True,
)
_CLAUSES: Final = re.compile(
    r"[;:—–] +| - |, +(?:and |but |so |or |then )?| (?:and|but) (?=(?:never|always|do not|don['’]t)\b)|[()]",
    re.IGNORECASE,
)
_NOT_RULE: Final = _pattern(
    r"\?[\s\"'”’)\]*_`]*$",
    r"^\W*(?:never ?mind|no (?:problem|worries|need|idea|longer)\b|never (?:been|seen|heard|had|before"
    r"|again\b))",
    r"^\W*(?:don['’]?t|do not) (?:worry|mind|know|think|see|understand|get it|care|believe|recall|remember"
    r"|like|have)\b",
    r"\buse (?:when|with .* when:|this (?:skill|agent)|for:)|\b(?:skill|agent) should be used\b|^\W*triggers?"
    r" (?:when|on|with)\b",
    r"^\W*(?:for (?:example|instance)|optionally|let(?:['’]s| me| us))\b",
    r"^\W*(?:theme|goal|objective|task|title|summary|purpose)\s*[:：]",
    r"^[a-z]\w*[-:][\w:.-]*: ",
    r"^\W*(?:example|e\.g\.|bad|good|wrong|right|correct|incorrect|❌|✅|✗|✓)\s*[:：(]",
)
"""Questions, reassurances, examples, statements of the task, and descriptions of skills and their use."""

# -- headings of lists -----------------------------------------------------------------------------------------

_FORBIDDING: Final = _pattern(
    r"^\W*(?:never|do not|don['’]?t|avoid|forbidden|prohibited|must not|not allowed)\b(?!.{50})|^.{0,30}\bto"
    r" avoid\W*$"
)
_OBLIGING: Final = _pattern(
    r"^\W*(?:[\w-]+ ){0,4}(?:rules?|constraints?|requirements?|guardrails?|guidelines?|conventions?|principles"
    r"|always|must"
    r"|boundaries|instructions)\b(?!.{40})"
)
_STEPS: Final = _pattern(
    r"^\W*(?:to \w|how to|steps?|process|procedure|workflow|usage|examples?|commands?|(?:\w+ )?scenario|tasks?"
    r"|goals|output"
    r"|confirm|verify|checklist|phase|red flags)\b|\b(?:can|options?|choices?)\b"
)

# -- other languages -------------------------------------------------------------------------------------------

_GERMAN: Final = _pattern(
    r"\b(?:niemals|nie|keinesfalls|auf keinen fall|unter keinen umständen|ausschließlich)\b",
    r"^(?:immer|stets|nur|keine?n?) \w+",
    r"\b(?:du|ihr|sie) (?:darfst|dürft|dürfen|musst|müsst|müssen|sollst|sollt|sollen)\b|\b(?:darfst|musst"
    r"|sollst) du\b",
    r"\b(?:darf|dürfen|muss|müssen|soll|sollen) (?:\w+ ){0,3}(?:nicht|nie|niemals|immer|nur|stets|zuerst)\b",
    r"\b(?:muss|müssen|darf|dürfen)\b.*(?:en|t|sein|werden)[.!]?$",
    r"\bohne (?:\w+ )?(?:rückfrage|zu fragen|erlaubnis|zustimmung|freigabe|genehmigung)\b",
    r"^frag(?:e|t)?\b.*\b(?:bevor|vorher|zuerst|immer|erst)\b|\bfrag(?:e|t)? (?:mich|uns|den"
    r" nutzer)\b.*\b(?:bevor|vorher|zuerst|erst)\b",
    r"^\w+e?\b(?: \w+){0,6} (?:nicht|nur|immer|nie|stets|keine?n?|statt)\b",
    r"\b(?:immer|stets)\b.*(?:en)[.!]?$|\bnicht\b.*(?:en)[.!]?$",
)
_FRENCH: Final = _pattern(
    r"^n(?:e |['’])\w+(?:-\w+)? (?:jamais|pas|rien|aucune?|que)\b|^(?:jamais|toujours|uniquement|seulement"
    r"|aucune?) \w",
    r"^ne (?:jamais|pas) \w|\b(?:tu|vous|on) (?:ne )?(?:dois|devez|doit)\b|\bil (?:ne )?faut\b|\best"
    r" interdit\b|\bobligatoire\b",
    r"\b(?:doit|doivent) (?:être|toujours|rester|passer|avoir|suivre|se)\b",
    r"\bne (?:doit|doivent|dois|devez|peut|peux|pouvez) (?:pas|jamais|être)\b",
    r"\bsans (?:me |nous )?(?:demander|l['’]accord|mon accord|permission|autorisation|confirmation)\b"
    r"|^demandez?(?:-moi)?\b.*\bavant\b",
    r"^(?:utilise|évite|garde|limite|respecte|écris|exécute|lance|vérifie)z?\b.*\b(?:toujours|jamais"
    r"|uniquement|seulement|avant|que)\b",
    r"^(?:évitez?|limitez?|respectez?) \w|^\w+ (?:toujours|jamais) \w",
)
_SPANISH: Final = _pattern(
    r"\b(?:nunca|jamás) \w|^(?:siempre|solo|sólo|solamente|únicamente) \w|^no (?!hay|es|está|son|se |me |lo "
    r"|la |te |era|fue|sé|tengo|puedo|tiene|funciona)\w+(?:es|as|a|e|en|an)\b",
    r"\b(?:debes?|deben|tienes que|hay que|no se puede|no puedes|está prohibido|queda prohibido|se deben?|es"
    r" obligatorio)\b",
    r"\bsin (?:preguntar(?:me)?|(?:mi |previa )?(?:permiso|autorización|confirmación|aprobación)"
    r"|consultar(?:me)?)\b",
    r"^(?:pregunta|pregúntame|consulta|consúltame|avísame)\b.*\bantes\b|\bantes de\b.*\b(?:pregunta|pregúntame"
    r"|consulta)\b",
    r"^(?:usa|utiliza|mantén|escribe|ejecuta)\b.*\b(?:siempre|solo|sólo|únicamente|nunca|antes)\b|^(?:evita"
    r"|limita|respeta) \w",
)
_CHINESE: Final = _pattern(
    r"(?:不要|禁止|必须|必需|务必|始终|总是|永远|绝不|绝对不|切勿|不得|不允许|不准|不能|不可|请勿|一律|严禁|勿)",
    r"(?:只能|只可|仅限|只允许|只使用|只用|仅使用|仅用|只改|只修改)|(?:先|事先)(?:问|询问|征求|确认|请示)|(?:应当|应该|优先)\w*(?:使用|始终|先|用)",
    r"未经(?:我|用户|允许|同意|许可|确认)|每次\w*(?:都|前|后)",
)
_JAPANESE: Final = _pattern(
    r"(?:必ず|絶対に|決して|常に|禁止|しないで|しないこと|するな|ないでください|てはいけ|てはなら|ではいけ|ではなら|厳禁|必須)",
    r"(?:なければなら|なければいけ|べきで|べからず|すること[。]?$)|(?:のみ|だけ)(?:を|で)?(?:使|変更|編集|許可|実行|行|し)",
    r"(?:前|まえ)に(?:必ず|、)?(?:確認|聞|尋ね|質問|許可|相談)|(?:許可|承認|確認)(?:なし|無し)(?:に|で)|(?:毎回|いつも)",
)
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_EUROPEAN: Final = (_GERMAN, _FRENCH, _SPANISH)
_GERMAN_WORDS: Final = (
    "der die das und nicht du bitte ein eine einen im den dem mit ohne für bevor immer nur nie niemals keine"
    " keinen ist zu auf muss darf frag frage mich vor von werden sein stets"
)
_FRENCH_WORDS: Final = (
    "le la les des une et pas tu vous pour avec sans dans du jamais toujours est au aux ce cette il ne avant de"
    " que moi demande uniquement doit doivent être"
)
_SPANISH_WORDS: Final = (
    "el la los las una y no para con sin en nunca siempre solo sólo es del al este esta lo por de que antes debe"
    " deben ser"
)
_EUROPEAN_WORDS: Final = tuple(
    _pattern(rf"\b(?:{_any_of(words)})\b") for words in (_GERMAN_WORDS, _FRENCH_WORDS, _SPANISH_WORDS)
)
"""Function words: a sentence with two of them, and more of them than English ones, is in that language."""
_ENGLISH_WORDS: Final = _pattern(
    r"\b(?:the|and|you|not|do|to|of|is|it|with|for|or|this|that|are|be|if|when|never|always|must|only|before)\b"
)
MINIMUM_WORDS: Final = 2


@lru_cache(maxsize=4_096)  # prompts and memory files are read again after every compaction
def rule_of(passage: Passage, register: Register) -> str | None:
    """Return the wording of the rule that *passage* states; None if it states none.

    An item of a list that is headed `Never:` or `Do not:` is worded with the heading.
    """
    sentence = passage.text
    if _NOT_RULE.search(sentence):
        return None
    if passage.is_item and _FORBIDDING.search(passage.heading):
        return worded(passage)
    pattern = _other_language(sentence)
    if pattern is not None:
        return sentence if pattern.search(opening(sentence)) else None
    return sentence if _obliges(sentence) or _instructs(passage, register) else None


def worded(passage: Passage) -> str:
    """Return a sentence as it is understood alone: an item of a list that forbids with its heading."""
    if passage.is_item and _FORBIDDING.search(passage.heading):
        return f"{passage.heading.rstrip(':： ')}: {passage.text}"
    return passage.text


def opening(sentence: str) -> str:
    """Return *sentence* from its main clause on, without labels, conditions and adverbs."""
    for _ in range(3):
        shorter = _CONDITION.sub("", _ADVERBS.sub("", _LABEL.sub("", sentence, count=1), count=1), count=1)
        if shorter == sentence:
            break
        sentence = shorter
    return sentence


def _obliges(sentence: str) -> bool:
    """Return whether *sentence* forbids, obliges or limits, in any register."""
    if _HEAD.match(opening(sentence)) or _ADDRESSED.search(sentence) or _CAPITALS.search(sentence):
        return True
    return any(_HEAD.match(opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


def _instructs(passage: Passage, register: Register) -> bool:
    """Return whether *passage* is a rule by its place: an instruction that is not a request for one step."""
    sentence, clause = _LABEL.sub("", passage.text, count=1), opening(passage.text)
    in_rule_list = passage.is_item and _OBLIGING.search(passage.heading) is not None
    is_imperative = bool(IMPERATIVE.match(clause) or _excludes(clause)) and not _STATES.search(sentence)
    if register == "request" and not in_rule_list:
        is_conditional = bool(_WHENEVER.match(sentence) and is_imperative)
        return is_conditional or bool(_ALL.match(clause) and _IMPERSONAL.search(clause))
    if _CONDITIONAL.match(sentence) and (is_imperative or _has_imperative(sentence)):
        return True
    if passage.is_heading:
        return False
    if _IMPERSONAL.search(sentence) or (register == "prompt" and _YOU_DO.match(clause)):
        return True
    if in_rule_list:
        return is_imperative
    is_step = (passage.is_step and not _LABEL.match(passage.text)) or (
        passage.is_item and _STEPS.search(passage.heading) is not None
    )
    return is_imperative and (not is_step or _GENERAL.match(clause) is not None)


_STATES: Final = re.compile(r"[:：]$|\w = |(?<![\w-])now[.!]?$")
"""The marks of a line that introduces, equates, or asks for one step at once."""


def _excludes(clause: str) -> bool:
    """Return whether *clause* is `no` and what there should not be, without a verb."""
    return _NEITHER.match(clause) is not None and _FINITE.search(clause) is None


def _has_imperative(sentence: str) -> bool:
    return any(IMPERATIVE.match(opening(clause)) for clause in _CLAUSES.split(sentence)[1:] if clause)


def plain(line: str) -> str:
    """Return a line of Markdown without its list mark, tags and emphasis."""
    return " ".join(_EMPHASIS.sub(r"\2", LIST_MARK.sub("", line, count=1)).split())


LIST_MARK: Final = re.compile(
    r"[\s>#(]*(?P<item>[-*+•–]\s+|(?P<number>\(?\d{1,3}[.)]|[a-z][.)]|[-*] \[[ xX]\])\s+)?"
    r"(?:[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]\s*|</?\w+>\s*)*"
)
"""The start of a line of Markdown; `item` of a list, `number` of a step."""
_EMPHASIS: Final = re.compile(r"\*\*|(?<![\w`*_])([*_])(?=[^\s*_])([^*_`]+)\1(?![\w`])")


def _other_language(sentence: str) -> re.Pattern[str] | None:
    """Return the pattern of a rule in the language of *sentence*; None for English."""
    if _KANA.search(sentence):
        return _JAPANESE
    if _HAN.search(sentence):
        return _CHINESE
    counts = [len(words.findall(sentence)) for words in _EUROPEAN_WORDS]
    most = max(counts)
    if most < MINIMUM_WORDS or most <= len(_ENGLISH_WORDS.findall(sentence)):
        return None
    return _EUROPEAN[counts.index(most)]
