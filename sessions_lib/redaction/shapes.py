"""What is known to be secret or personal by what stands around it: a table with a row for each.

Headers, addresses with a password, command lines, private key blocks, hashes of passwords, e-mail addresses, home
folders. Every repetition is bounded, and each pattern begins with something rare (its hint), so that no text takes more
than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SCHEME = r"(?:bearer|basic|token|apikey|api-key|negotiate|ntlm|splunk|key)[ \t]{1,3}"
# A word of a command line, in quotes or not; a variable is none.
_QUOTED = (
    r"(?:\"(?P<secret>[^\"\r\n\[$][^\"\r\n]{0,255})\"|'(?P<secret_2>[^'\r\n\[$][^'\r\n]{0,255})'"
    r"|(?P<secret_3>(?![$\[<-])[^\s\"'`<>\\|;&]{1,255}))"
)
_ON = r"\b[^\r\n]{0,300}?[ \t]"  # further on in a command line
# Between words of one file, on one line or on two, behind what an editor or a quotation puts before a line.
_GAP = r"(?:[ \t]{1,8}|[ \t]{0,8}[\r\n]{1,4}(?:[ \t]{0,24}(?:\d{1,6}[ \t]{0,2}[→:|\t]|[>|+#*-]))?[ \t]{0,8})"
_NO_LOGIN = r"(?!(?:with|using|via|by|and|or|the|a|an|your|to|is|in)\b)\S{1,255}"

# What it is | what must be in the text, in lower case | its pattern: what the groups named "secret…" (without any: the
# whole) match is replaced
Row = tuple[str, tuple[str, ...], str]
SHAPES: tuple[Row, ...] = (
    ("API key", (":aa",), r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),  # Telegram
    ("API key", ("-us",), r"(?<![A-Za-z0-9])[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),  # Mailchimp
    ("API key", ("q~",), r"(?<![\w~.-])[\w~.-]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~.-])"),  # Microsoft Entra
    ("Vault token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,80}"),  # Terraform Cloud
    ("Fly token", ("flyv1",), r"FlyV1[ \t]{1,3}[\w+/=,-]{20,4096}"),
    (
        "password hash",
        ("$",),
        r"\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|argon2(?:id?|d)|scrypt|pbkdf2(?:-sha\d{1,3})?|bcrypt(?:-sha\d{1,3})?)\$"
        r"[\w./$=,+-]{20,255}",
    ),
    (
        "private key",  # PuTTY's, on one line, as a title
        ("private-lines",),
        r"private-lines:[ \t]{0,3}\d{1,4}[ \t]{1,8}"
        r"(?P<secret>[A-Za-z0-9+/]{8,512}={0,3}(?:[ \t]{1,8}[A-Za-z0-9+/]{16,512}={0,3}){0,80})",
    ),
    (
        "private key",  # a JSON web key: "d" is its private part, "k" the whole of a symmetric one
        ('"kty"',),
        r"(?<=[{,\s])\"(?:d|p|q|dp|dq|qi|k)\"[ \t]{0,3}:[ \t\r\n]{0,3}\"(?P<secret>[\w-]{20,4096})\"",
    ),
    # --- headers
    (
        "authorization",
        ("authorization",),
        rf"(?<![A-Za-z])authorization[\"']{{0,2}}[ \t]{{0,3}}[:=,][ \t]{{0,3}}[\"'`]{{0,2}}(?:{_SCHEME}"
        r"(?!(?:auth|token|access|required|realm|scheme|header|your|the)\w{0,20}\b)"
        r"(?P<secret>[^\s\"'`<>\[\]$,;{}][^\s\"'`<>,;]{3,4095})"
        r"|(?:Digest|AWS4-HMAC-SHA256|OAuth|Hawk|SharedKey|SharedAccessSignature)[ \t]{1,3}"
        r"(?P<secret_2>[^\r\n\[]{6,2048})"
        r"|(?P<secret_3>(?=[^\s\"'`<>,;]{0,255}[0-9])[^\s\"'`<>\[\]$,;{}(]{8,4096})"
        r"|[A-Za-z][\w-]{1,24}[ \t]{1,3}(?P<secret_4>(?=[^\s\"'`<>,;]{0,255}[0-9])[^\s\"'`<>\[\]$,;{}(]{16,4096}))",
    ),
    (
        "authorization",
        ("bearer",),
        r"\bbearer[ \t]{1,3}(?P<secret>(?=[A-Za-z._~+/=-]{0,255}[0-9])[A-Za-z0-9._~+/=-]{8,4096})",
    ),
    (
        "cookie",
        ("cookie",),
        r"(?<![\w-])(?:set-)?cookie2?[\"']?[ \t]{0,3}(?::[ \t]{0,3}[\"'`]?|=[ \t]{0,3}[\"'`])"
        r"(?P<secret>[\w!#$%&*+.^|~-]{1,128}(?==)(?:=\"[^\"\r\n]{0,1024}\"|=\\\"|[^\r\n\"'`<>]){2,4096}"
        r"|(?=[\w.%~+/-]{0,255}[0-9])[\w.%~+/-]{16,4096})"
        r"|document\.cookie[ \t]{0,3}=[ \t]{0,3}[\"'`](?P<secret_2>[\w.-]{1,128}=[^\r\n\"'`<>$]{1,4096})",
    ),
    (
        "cookie",
        ("\ttrue\t", "\tfalse\t"),  # a file of cookies
        r"\t(?:TRUE|FALSE)\t/[^\s]{0,200}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\s]{1,128}\t(?P<secret>[^\s\[]{1,4096})",
    ),
    (
        "token",
        ("key=", "sig", "code=", "auth=", "x-amz"),
        r"[?&;](?:key|sig|signature|code|auth|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature)"
        r"=(?P<secret>[^&\s\"'`#<>|\[\\=][^&\s\"'`#<>|\[\\]{7,2048})",
    ),
    # --- files of passwords, and statements that set one
    (
        "password",
        ("machine", "login"),  # .netrc
        rf"(?:\bmachine{_GAP}\S{{1,255}}|\bdefault(?={_GAP}(?:login|account)\b)"
        rf"|(?m:^)[ \t]{{0,8}}login[ \t]{{1,8}}{_NO_LOGIN}){_GAP}"
        rf"(?:(?:login|account){_GAP}\S{{1,255}}{_GAP}){{0,2}}"
        r"password[ \t\r\n]{1,8}(?P<secret>[^\s\[$<]\S{0,255})",
    ),
    (
        "password",
        (":5432:", ":5433:", ":6432:", ":*:"),  # .pgpass
        r"(?<![\w.*:-])[\w.*-]{1,255}:(?:[0-9]{4}|\*):[\w.*-]{1,64}:[\w.*@-]{1,64}:(?P<secret>[^\s\[:/\"'][^\s\"']{2,255})",
    ),
    (
        "password",
        ("identified", "password '", 'password "', "password('", 'password("'),  # SQL
        r"\b(?:(?:create|alter|grant|set)\b[^\r\n]{0,200}?\bidentified(?:[ \t]{1,3}with[ \t]{1,3}\S{1,40})?"
        r"[ \t]{1,3}(?:by|as)[ \t]{1,3}|password(?:[ \t]{1,3}|\())"
        r"(?:'(?P<secret>[^'\r\n\[$][^'\r\n]{0,255})'|\"(?P<secret_2>[^\"\r\n\[$][^\"\r\n]{0,255})\")",
    ),
    (
        "password",
        ("type=",),  # a field of a form
        r"<input\b(?=[^<>]{0,400}\btype=[\"']?password\b)[^<>]{0,400}?\bvalue=[\"'](?P<secret>[^\"'<>\[$][^\"'<>]{0,255})",
    ),
    (
        "password",
        ("chpasswd", "passwd --stdin"),
        r"\becho[ \t]{1,3}(?:-\w{1,3}[ \t]{1,3})?[\"']?(?:[\w.-]{1,64}:)?"
        r"(?P<secret>[^\s\"'|\[$:-][^\"'|\r\n:]{0,120}?)[\"']?"
        r"[ \t]{0,3}\|[ \t]{0,3}(?:sudo[ \t]{1,3})?(?:chpasswd|passwd[ \t]{1,3}--stdin)"
        r"|\bchpasswd[ \t]{0,3}<<<[ \t]{0,3}[\"']?[\w.-]{1,64}:(?P<secret_2>[^\s\"'\[$][^\s\"']{0,120})",
    ),
    (
        "password",
        ("sqlplus", "sqlldr", "expdp", "impdp"),
        r"\b(?:sqlplus|sqlldr|expdp|impdp)\b[^\r\n]{0,80}?[ \t][\"']?[\w$#]{1,64}"
        r"/(?P<secret>[^\s/@\"'\[$&<][^\s@\"']{0,128})@",
    ),
    (
        "password",
        ("freerdp",),
        r"\b\w{0,3}freerdp\w?\b[^\r\n]{0,300}?[ \t]/p:[\"']?(?P<secret>[^\s\"'\[$<][^\s\"']{0,128})",
    ),
    # --- people
    (
        "home folder",
        ("/home/", "/users/"),
        r"(?:(?<![\w.~])|(?<=file://))(?:/mnt)?(?:/[a-z])?/(?:home|Users)/(?!Shared\b|linuxbrew\b)(?=[^\s/])[\w.+-]{1,64}(?<![.])",
    ),
    (
        "home folder",
        (":/users", *(":" + "\\" * count + "users" for count in range(1, 5))),
        r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\{1,4}|/)(?i:Users)(?:\\{1,4}|/)(?!(?i:Public)\b)"
        r"(?:[^\\/:*?\"<>|\r\n]{1,64}(?=[\\/])|[^\\/:*?\"<>|\s]{1,64})",
    ),
    ("home folder", ("/-",), r"(?<=/)-(?:Users|home)-[A-Za-z0-9_]{1,64}"),
)
# Only where there is an address …
ADDRESSES: tuple[Row, ...] = (
    (
        "webhook",
        ("hooks.", "/webhook"),
        r"https?://(?:hooks\.slack\.com/(?:services|workflows|triggers)|(?:\w{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks"
        r"|hooks\.zapier\.com/hooks|[\w.-]{1,80}\.webhook\.office\.com/webhookb2|hook\.\w{2,6}\.make\.com)/[A-Za-z0-9/_@-]{16,255}",
    ),
    ("password", ("://",), r"(?<=://)[^\s/:@\"'<>\\]{0,128}:(?P<secret>(?![${%*\[<])[^\s/\"'<>\\]{1,256})@"),
    (
        "password",  # with a slash in it, which addresses should not have
        ("sql", "postgres", "mongo", "redis", "amqp"),
        r"\b(?:\w{0,10}sql|postgres|mongodb|rediss?|amqps?)(?:\+\w{1,20})?://[^\s/:@\"'<>\\]{0,128}:"
        r"(?P<secret>(?![${%*\[<]|\d{1,5}/)[^\s\"'<>\\]{1,256})@",
    ),
    ("token", ("://",), r"(?<=://)(?P<secret>[A-Za-z0-9_-]{16,255})@"),
)
# … and only where there is an option of a command.
COMMANDS: tuple[Row, ...] = (
    ("cookie", ("curl", "wget"), rf"\b(?:curl|wget){_ON}(?:-b|--cookie)[ \t=]{{1,3}}(?=[^\s]{{0,128}}=){_QUOTED}"),
    (
        "password",
        ("curl", "wget", "http ", "https ", "xh "),
        rf"\b(?:curl|wget|xh|https?)(?=[ \t]){_ON}(?:-[a-z]{{0,6}}u|--user|--proxy-user|-a|--auth)[ \t=]{{0,3}}[\"']?"
        r"[^\s:\"'=-][^\s:\"']{0,128}:(?P<secret>(?!//)[^\s\"'\[$<][^\s\"']{0,255})",
    ),
    (
        "password",
        ("mysql", "mariadb", "sshpass", "7z", "rar ", "xtrabackup"),
        rf"\b(?:mysql\w{{0,10}}|mariadb[\w-]{{0,12}}|xtrabackup|sshpass|7z|rar|unrar){_ON}(?-i:-p)(?![0-9]{{2,5}}:){_QUOTED}",
    ),
    (
        "password",
        ("sshpass", "login", "mongo", "redis-cli", "ldap", "zip"),
        rf"\b(?:(?:sshpass|mongo\w{{0,8}}|(?:docker|podman|buildah|oras|registry|nerdctl|az)[ \t]{{1,3}}login)"
        rf"{_ON}(?-i:-p)|redis-cli{_ON}-a|ldap\w{{2,10}}{_ON}-w|(?:un)?zip{_ON}(?-i:-P))[ \t]{{1,3}}{_QUOTED}",
    ),
    (
        "password",
        ("ssh-keygen", "openssl", "secret set"),
        rf"\b(?:ssh-keygen{_ON}(?-i:-[NP])|openssl{_ON}(?-i:-k)|secret[ \t]set{_ON}(?:-b|--body))"
        rf"[ \t=]{{1,3}}{_QUOTED}",
    ),
    ("password", ("sqlcmd", "bcp ", "osql"), rf"\b(?:sqlcmd|osql|bcp){_ON}(?-i:-P)[ \t]{{0,3}}{_QUOTED}"),
    ("password", ("rdesktop",), rf"\brdesktop{_ON}-p[ \t]{{0,3}}{_QUOTED}"),
    (
        "password",
        ("smb", "rpcclient", "winexe"),
        rf"\b(?:smb\w{{1,12}}|rpcclient|winexe){_ON}(?:-U|--user)[ \t=]{{0,3}}[\"']?[^\s%\"']{{1,64}}%"
        r"(?P<secret>[^\s\"'\[$<][^\s\"']{0,128})",
    ),
    (
        "password",
        ("htpasswd",),
        r"\bhtpasswd[ \t]{1,3}(?:-(?=\w{0,6}b)(?=\w{0,6}n)\w{2,7}|-(?=\w{0,6}b)\w{1,7}[ \t]{1,3}\S{1,200})"
        rf"[ \t]{{1,3}}\S{{1,64}}[ \t]{{1,3}}{_QUOTED}",
    ),
    ("password", ("pass:",), r"-pass(?:in|out)?[ \t]{1,3}[\"']?pass:(?P<secret>[^\s\"'\[$]{1,255})"),  # openssl
    (
        "password",
        ("sudo", "-stdin", "--with-token"),
        r"\becho[ \t]{1,3}(?:-n[ \t]{1,3})?[\"']?(?P<secret>[^\s\"'|\[$-][^\"'|\r\n]{0,120}?)[\"']?[ \t]{0,3}"
        r"\|[ \t]{0,3}(?:sudo[ \t]{1,3}-S|[^|\r\n]{1,200}?(?:--\w{1,20}-stdin|--with-token))",
    ),
)
REPLACEMENTS = {"home folder": "~"}
E_MAIL = "e-mail address"  # gives way where another matched: ``x:secret@host``
_LOCAL = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}\Z")
_DOMAIN = re.compile(r"@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_AS_WRITTEN = ("home folder", "API key")  # upper and lower case differ


def compiled() -> list[tuple[str, re.Pattern[str], tuple[str, ...], str]]:
    """Kind, pattern, hints and gate of each row: a hint and the gate stand, in lower case, where it is found."""
    return [
        (kind, re.compile(pattern, 0 if kind in _AS_WRITTEN else re.IGNORECASE), hints, gate)
        for rows, gate in ((SHAPES, ""), (ADDRESSES, "://"), (COMMANDS, " -"))
        for kind, hints, pattern in rows
    ]


def e_mail_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where e-mail addresses stand in ``text``; ``git@`` is none."""
    at = text.find("@")
    while at >= 0:
        local = _LOCAL.search(text[max(0, at - 65) : at])
        domain = _DOMAIN.match(text, at) if local is not None else None
        if local is not None and domain is not None and local.group() != "git":
            yield at - len(local.group()), domain.end()
        at = text.find("@", at + 1)
