"""The grammar by which a sentence states a rule, in English, German, French, Spanish, Chinese and Japanese.

A sentence states a rule if one of its clauses forbids, obliges, limits or prefers, and is addressed to the agent:
`never push`, `you must not …`, `commits must be signed`. In system prompts and memory files a plain imperative
does too: what is written there holds for every request. In a message of the user it is a request.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> str:
    return "|".join(text.split())


_IMPERATIVES: Final = _words(
    "accept act adhere adjust aim align allow analyze annotate answer append apply approach ask assume attach avoid"
    " back base batch be begin break bring build bundle bump call capture check choose cite clarify clean close"
    " combine comment commit communicate complete confirm consider consult continue convert copy cover create cut"
    " default defer define delegate delete describe design disable discuss document draft drop dump edit emit enable"
    " encode end enforce ensure escape establish evaluate exclude execute exercise expect explain expose fail favor"
    " fix flag focus follow format generate give go group guard handle help hide identify ignore implement import"
    " include indent inform initialize insert inspect install invoke isolate keep label leave let limit link list"
    " load log look maintain make mark match merge minimize mirror mock move name note notify obey offer omit open"
    " optimize order output pair parallelize pass pick pin place plan point prefer prefix preserve prioritize produce"
    " proceed propose protect provide pull push put quote raise read rebase recommend record redact refer reference"
    " refuse register reject release remember remove rename render replace reply report request require reserve"
    " resolve respect respond restart return reuse review run save scope search seek separate set show sign skip sort"
    " specify split squash stage start state stay stick stop store structure submit suggest summarize surface take"
    " tell test think throw track treat trust try turn update use validate verify wait warn work wrap write"
)
_FLAGS: Final = re.IGNORECASE

_LIST_MARK: Final = re.compile(
    r"^[\s>]*(?:[-*+•–]\s+|\(?\d{1,3}[.)]\s+|[a-z][.)]\s+|#{1,6}\s+|\[[ xX]\]\s+|[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]\s*)*"
)
_LABEL: Final = re.compile(
    r"^(?:important|critical|warning|note|notice|attention|caution|rule|rules|reminder|remember|constraints?"
    r"|security|wichtig|achtung|regel|hinweis|importante?|attention|règle|atención|regla|重要|注意|规则|ルール)"
    r"(?: note| rule)?\s*[:：!—-]+\s*",
    _FLAGS,
)
_CONDITION: Final = re.compile(
    r"^(?:(?:and|or|but|so) )?(?:when(?:ever)?|if|before|after|for|in|on|unless|while|during|as|once|until|without|by|at"
    r"|to|because|since|with|under|given|where(?:ver)?|even|except|outside|otherwise|this means|wenn|falls|bevor|vor"
    r"|nach|bei|für|si|avant|après|pour|quand|lorsque|antes|después|para|cuando)\b[^,:;]{0,140}[,:;]\s*",
    _FLAGS,
)
_ADVERBS: Final = re.compile(
    r"^(?:(?:please|also|then|instead|and|but|so|or|however|again|just|simply|finally|first|additionally|furthermore"
    r"|therefore|thus|ok|okay|yes|no|now|btw|actually|kindly|strictly|strongly|generally|usually|typically|bitte"
    r"|und|aber|also|auch|s'il (?:te|vous) pla[iî]t|et|mais|por favor|y|pero)\b[,:]?\s+)+",
    _FLAGS,
)
_CLAUSES: Final = re.compile(
    r"[;:—–]\s+|\s-\s|,\s+(?:and |but |so |or |then )?|\s(?:and|but)\s(?=(?:never|always|do not|don['’]t)\b)|[()]",
    _FLAGS,
)

_NOT_RULE: Final = re.compile(
    r"\?\s*[\"'”’)\]*_`]*$"
    r"|^\W*(?:never ?mind|(?:don['’]?t|do not) (?:worry|mind|know|think|see|understand|get it|care|believe|recall"
    r"|remember|like|have)\b|no (?:problem|worries|need|idea|longer)\b|never (?:been|seen|heard|had|before|again\b))"
    r"|^\W*(?:example|e\.g\.|bad|good|wrong|right|correct|incorrect|❌|✅|✗|✓)\s*[:：(]",
    _FLAGS,
)
"""Questions, reassurances and examples."""

_HEAD: Final = re.compile(
    r"^(?:you )?(?:"
    r"never (?!\w+ed\b(?<!\bneed)(?<!\bembed)(?<!\bproceed))\w"
    r"|(?:do not|don['’]?t|donot)\s+(?!worry|mind|know|think|see|understand|care|believe|recall|need|have|want)\w"
    r"|always\s+\w"
    r"|avoid\s+\w"
    r"|must(?: not)?\s+\w"
    r"|refrain from\b|under no circumstances\b|at no point\b|no exceptions\b|(?:strongly )?prefer\s+\w"
    r"|ask (?:me|first|before|the user|for (?:\w+ )?(?:confirmation|approval|permission|consent))\b"
    r"|wait for (?:my|the user|(?:\w+ )?(?:approval|confirmation|permission|review))\b"
    r"|check with (?:me|the user)\b|confirm (?:with me )?before\b|stop and ask\b"
    r"|only (?:ever )?(?:" + _IMPERATIVES + r")\b"
    r"|limit (?:yourself|your|the|all|each)\b|stick (?:to|with)\b"
    r")",
    _FLAGS,
)
"""The start of a clause that forbids, obliges or limits."""

_ADDRESSED: Final = re.compile(
    r"\b(?:you|agents?|the (?:assistant|agent|model|coordinator|reviewer)|we|sub-?agents?|claude|codex)"
    r" (?:must|shall|should|may|can|will)\s*(?:not|never|only|always)\b"
    r"|\b(?:you|agents?|the (?:assistant|agent|model)|claude|codex) (?:must|shall|may not|cannot|can['’]t|mustn['’]t"
    r"|shouldn['’]t|are (?:not |only )?(?:allowed|permitted|required|expected|forbidden)|have to (?:always|ask))\b"
    r"|\bi (?:(?:do not|don['’]t|never) want (?:you|any|us|to see)|(?:always )?want you to (?:always|never|only)"
    r"|prefer (?!to (?:pay|book|fly))\w+ (?:over|to|instead)|expect you to)\b"
    r"|\bwe (?:never|always) (?!\w+ed\b)\w+"
    r"|\bwithout (?:first )?(?:asking|(?:my|the user['’]s|explicit|prior|user)\s+(?:\w+ )?(?:approval|permission|consent"
    r"|confirmation|request|instruction))\b"
    r"|\bunless (?:explicitly |specifically )?(?:i|asked|told|instructed|requested|the user|you are|you['’]re)\b"
    r"|\b(?:from now on|going forward|every time|each time you|at all times)\b",
    _FLAGS,
)
"""An obligation of the agent anywhere in a sentence."""

_IMPERSONAL: Final = re.compile(
    r"\b(?:must|mustn['’]t|shall)\b(?! have (?:been|had))|\bshould (?:always|never|not|only|be|have|follow|use|include"
    r"|avoid|keep|contain|start|stay|match|go)\b|\bshouldn['’]t\b|\b(?:is|are) (?:strictly )?(?:forbidden|prohibited"
    r"|not allowed|mandatory|required|never (?:acceptable|allowed|okay|ok))\b|\bmay (?:not|only|never)\b"
    r"|\bneeds? to be\b|\b(?:has|have) to be\b|\bnever (?:be )?(?:use|commit|push|skip|add|edit|modify|delete|guess|assume)\b",
    _FLAGS,
)
"""An obligation on the work: `commits must be signed`."""

_ALL: Final = re.compile(r"^(?:all|every|each|any|no)\s+\w+", _FLAGS)
_IMPERATIVE: Final = re.compile(rf"^(?:{_IMPERATIVES})\s+(?!is\b|are\b|was\b|of\b|has\b)\S", _FLAGS)
_YOU_DO: Final = re.compile(
    r"^you (?!are\b|have\b|can\b|could\b|will be\b|were\b|may\b|might\b|'re\b|’re\b|just\b|did\b|know\b|see\b|want\b|need\b|get\b|had\b)\w+",
    _FLAGS,
)

_GERMAN: Final = (
    r"\b(?:niemals|nie|keinesfalls|auf keinen fall|unter keinen umständen|ausschließlich|immer nur)\b"
    r"|^(?:immer|stets|nur|keine?n?)\s+\w+|\b(?:du|ihr|sie) (?:darfst|dürft|dürfen|musst|müsst|müssen|sollst|sollt|sollen)\b"
    r"|\b(?:darf|dürfen|muss|müssen|soll|sollen) (?:nicht|nie|niemals|immer|nur|stets|vor|mit|zuerst)\b"
    r"|\b(?:muss|müssen|darf|dürfen)\b.*\w+(?:en|t)[.!]?$|\bohne (?:\w+ )?(?:rückfrage|zu fragen|erlaubnis|zustimmung|freigabe)\b"
    r"|^frag(?:e|t)?\b.*\b(?:bevor|vorher|zuerst|immer|erst)\b|\bbevor du\b.*\bfrag|^(?:verwende|benutze|nutze|nimm|halte|schreibe?|ändere?|lösche?|committe?|pushe?|mach|fasse?|rühre?|starte?|führe?)\b.*\b(?:nicht|nur|keine?n?|immer|nie|stets|statt)\b"
    r"|\bimmer\b.*\b(?:verwenden|benutzen|schreiben|prüfen|fragen|testen|ausführen)\b|\bnicht\b.*\b(?:ändern|löschen|verwenden|benutzen|pushen|committen|anfassen)[.!]?$"
)
_FRENCH: Final = (
    r"\b(?:ne|n['’])\s?\w+ (?:jamais|pas|rien|aucune?)\b(?!.*\?)|^(?:jamais|toujours|uniquement|seulement|aucune?)\b"
    r"|\btoujours\b.*\w|\b(?:tu|vous|il|on) (?:ne )?(?:dois|devez|doit|doivent|faut)\b|\bil (?:ne )?faut\b|\bil est interdit\b"
    r"|\b(?:doit|doivent) (?:être|toujours|rester|passer|avoir|suivre|se)\b|\bne (?:doit|doivent|dois|devez|peut|peux|pouvez) (?:pas|jamais)\b"
    r"|\bsans (?:me )?(?:demander|l['’]accord|mon accord|permission|autorisation|confirmation)\b|^demande(?:z|-moi)?\b.*\bavant\b"
    r"|^(?:utilise|utilisez|évite|évitez|garde|gardez|limite|limitez|respecte|respectez)\b"
)
_SPANISH: Final = (
    r"\b(?:nunca|jamás)\b|^(?:siempre|solo|sólo|solamente|únicamente)\b|^no (?:\w+es|\w+as|\w+a|\w+e|\w+en|\w+an)\b"
    r"|\b(?:debes?|deben|tienes que|hay que|no se puede|no puedes|no debe|está prohibido|queda prohibido|se debe|se deben)\b"
    r"|\bsin (?:preguntar(?:me)?|mi permiso|permiso|autorización|confirmación|consultar(?:me)?)\b|^(?:pregunta|pregúntame|consulta|avísame)\b.*\bantes\b"
    r"|^(?:usa|utiliza|evita|mantén|respeta|limita)\b|\bsiempre\b.*\b(?:antes|usa|ejecuta|pregunta|escribe|usar|ejecutar)\b"
)
_CHINESE: Final = (
    r"(?:不要|禁止|必须|必需|务必|始终|总是|永远|绝不|绝对不|切勿|不得|不允许|不准|不能|请勿|一律|严禁|只能|只可|仅限|只允许|只使用|只用|仅使用)"
    r"|(?:先|事先)(?:问|询问|征求|确认)|(?:应当|应该|优先)(?:使用|始终|先)?|未经(?:我|用户|允许|同意|许可)"
)
_JAPANESE: Final = (
    r"(?:必ず|絶対に|決して|常に|禁止|しないで|しないこと|するな|ないでください|てはいけ|てはなら|ではいけ|ではなら|なければなら|なければいけ|べきで|べからず|厳禁|必須)"
    r"|(?:のみ|だけ)(?:を)?(?:使|変更|編集|許可|実行|行)|(?:前|まえ)に(?:必ず)?(?:確認|聞|尋ね|質問|許可)|(?:許可|承認|確認)なし(?:に|で)"
)
_HAN: Final = re.compile(r"[\u3400-\u9fff]")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_CHINESE_RULE: Final = re.compile(_CHINESE)
_JAPANESE_RULE: Final = re.compile(_JAPANESE)
_EUROPEAN: Final = tuple(re.compile(pattern, _FLAGS) for pattern in (_GERMAN, _FRENCH, _SPANISH))
_EUROPEAN_WORDS: Final = tuple(
    re.compile(rf"\b(?:{_words(words)})\b", _FLAGS)
    for words in (
        "der die das und nicht du bitte ein eine einen im den dem mit ohne für bevor immer nur nie niemals keine ist zu auf",
        "le la les des une et pas tu vous pour avec sans dans du jamais toujours est au aux ce cette il",
        "el la los las una y no para con sin en nunca siempre solo sólo es del al este esta lo por",
    )
)
"""Function words; a sentence with two of them and more of them than of others is read in that language."""


def states_rule(sentence: str, *, is_request: bool, is_instructions: bool) -> bool:
    """Return whether *sentence* states a rule.

    *is_request* if the user wrote it, so that a plain imperative is a request for one step. *is_instructions* if
    it is from a document of instructions, in which a plain imperative is a rule.
    """
    if _NOT_RULE.search(sentence):
        return False
    if _HAN.search(sentence) or _KANA.search(sentence):
        return bool((_JAPANESE_RULE if _KANA.search(sentence) else _CHINESE_RULE).search(sentence))
    clause = opening(sentence)
    foreign = _foreign_rule(sentence)
    if foreign is not None:
        return bool(foreign.search(clause))
    if _HEAD.match(clause) or _ADDRESSED.search(sentence):
        return True
    if any(_HEAD.match(opening(part)) for part in _CLAUSES.split(sentence)[1:] if part):
        return True
    if is_request:
        return bool(_ALL.match(clause) and _IMPERSONAL.search(clause))
    if _IMPERSONAL.search(sentence):
        return True
    return is_instructions and bool(_IMPERATIVE.match(clause) or _YOU_DO.match(clause))


def opening(sentence: str) -> str:
    """Return *sentence* from its main clause on, without labels, conditions and adverbs."""
    for _ in range(3):
        shorter = sentence
        for lead in (_LABEL, _ADVERBS, _CONDITION):
            shorter = lead.sub("", shorter, count=1)
        if shorter == sentence:
            break
        sentence = shorter
    return sentence


def plain(line: str) -> str:
    """Return a line of Markdown without its list mark and emphasis."""
    return " ".join(_EMPHASIS.sub("", _LIST_MARK.sub("", line, count=1)).split())


_EMPHASIS: Final = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")


def _foreign_rule(sentence: str) -> re.Pattern[str] | None:
    """Return the pattern of a rule in the language of *sentence*; None for English."""
    counts = [len(words.findall(sentence)) for words in _EUROPEAN_WORDS]
    most = max(counts)
    if most < 2 or most <= len(_ENGLISH_WORDS.findall(sentence)):
        return None
    return _EUROPEAN[counts.index(most)]


_ENGLISH_WORDS: Final = re.compile(
    r"\b(?:the|and|you|not|do|to|of|is|it|with|for|or|this|that|are|be|if|when|never|always|must|only|before)\b",
    _FLAGS,
)
