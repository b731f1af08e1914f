package secrets

import (
	"strings"
	"unicode/utf8"
)

// speechWords are the ends of words for a password in other languages than English (Passwort, Kennwort, mot de passe,
// contraseña, senha, wachtwoord, parola, lösenord, passord, salasana, heslo, пароль, 密码, パスワード), as few bytes as will
// do: the automaton has room for 63 different ones.
var speechWords = []string{
	"wort", "de passe", "contrase", "senha", "wachtwoord", "parola", "senord", "passord", "salasana", "heslo",
	"арол", "码", "ワード",
}

// speechHeads are the texts before the end of a speech word that is ambiguous alone.
var speechHeads = map[string][]string{
	"wort": {"pass", "kenn", "zugangs"}, "de passe": {"mot "}, "senord": {"ö"}, "арол": {"п"},
	"码": {"密", "口令"}, "ワード": {"パス"},
}

// speechLinks connect the word for a password to its value, in the languages of speechWords.
var speechLinks = []string{
	"ist ", "lautet ", "est ", "es ", "è ", "é ", "is ", "är ", "er ", "on ", "je ", "это ", "— ", "- ", "是", "为", "は",
	":", "：", "=", "＝",
}

// speech finds a password in a sentence of another language: "das Passwort der Datenbank ist …". In a sentence, a token
// with letters and digits, or in quotes, counts; after a colon that follows the word directly, any token does.
func (s *secretScanner) speech(end int) {
	if end <= s.covered || !s.saysPassword(end) {
		return
	}
	i := end
	for i < len(s.text) && i-end < 12 && !isSpace(s.text[i]) && !s.links(i) { // the word's end: ña, ь
		_, size := utf8.DecodeRuneInString(s.text[i:])
		i += size
	}
	for words := 0; words < 6 && i-end < 80; words++ {
		i = s.skipBlank(i)
		if n := s.linkLength(i); n > 0 {
			s.spoken(s.skipBlank(i+n), words == 0 && strings.ContainsAny(s.text[i:i+n], ":=："))
			return
		}
		next := i
		for next < len(s.text) && next-i < 40 && (isAlnum(s.text[next]) || s.text[next] >= utf8.RuneSelf && !s.links(next) ||
			s.text[next] == '-' || s.text[next] == '\'') {
			next++
		}
		if next == i {
			return
		}
		i = next
	}
}

// saysPassword reports whether the speech word that ends before end, with the text before it, means a password.
func (s *secretScanner) saysPassword(end int) bool {
	before := strings.ToLower(s.text[max(end-16, 0):end])
	for word, heads := range speechHeads {
		if rest, ok := strings.CutSuffix(before, word); ok {
			for _, h := range heads {
				if strings.HasSuffix(rest, h) {
					return true
				}
			}
			return false
		}
	}
	return true
}

// spoken takes the word or quotation at from as a password, if it can be one.
func (s *secretScanner) spoken(from int, anything bool) {
	at, quoted := s.quoted(from)
	if !quoted {
		at = s.bare(from)
		for at.end > at.start && strings.IndexByte(".!?:", s.text[at.end-1]) >= 0 {
			at.end--
		}
	}
	text := s.text[at.start:at.end]
	if text == "" || placeholder(text) || !quoted && (sentenceWord(text) || !anything && !mixed(text)) {
		return
	}
	s.addValue(rulePassword, value{span: at, quoted: quoted})
}
