package denials

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ttlab/vmwarden/docs"
	"github.com/ttlab/vmwarden/internal/policy"
)

// Explanation is what the documentation says of a code.
type Explanation struct {
	Code string
	// Paragraphs are empty for a code that this version does not have.
	Paragraphs []Paragraph
}

// Paragraph is a paragraph of the documentation, in pieces.
type Paragraph struct {
	// Example tells that it is a denial's text and not about one.
	Example bool
	Spans   []Span
}

// Span is a piece of text that is written in one way.
type Span struct {
	Text string
	// Code and Strong tell how; a link's text is plain, since what it leads to is not on the page.
	Code, Strong bool
}

// explain gives the section of a code.
func explain(code string) Explanation {
	explanation := Explanation{Code: code}
	// Other sections of the document are not about a code.
	if !slices.Contains(policy.Codes(), policy.Code(code)) {
		return explanation
	}
	_, section, _ := strings.Cut(docs.Denials, "\n## "+code+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for text := range strings.SplitSeq(strings.TrimSpace(section), "\n\n") {
		text, example := strings.CutPrefix(text, "> ")
		explanation.Paragraphs = append(explanation.Paragraphs, Paragraph{Example: example, Spans: spans(strings.ReplaceAll(text, "\n", " "))})
	}
	return explanation
}

// markup is what of Markdown the sections use: code, strong words, links.
var markup = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^]]+)\\]\\([^)]+\\)")

func spans(text string) []Span {
	var list []Span
	plain := func(text string) {
		if text != "" {
			list = append(list, Span{Text: text})
		}
	}
	end := 0
	for _, match := range markup.FindAllStringSubmatchIndex(text, -1) {
		plain(text[end:match[0]])
		end = match[1]
		switch {
		case match[2] >= 0:
			list = append(list, Span{Text: text[match[2]:match[3]], Code: true})
		case match[4] >= 0:
			list = append(list, Span{Text: text[match[4]:match[5]], Strong: true})
		default:
			plain(text[match[6]:match[7]])
		}
	}
	plain(text[end:])
	return list
}
