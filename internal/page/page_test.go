package page

import (
	"bytes"
	"html"
	"strings"
	"testing"
)

func TestThePagesPolicyNamesItsStyleAndItsScriptAsTheyAre(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, Template(`{{define "body"}}<p>{{.}}</p>{{end}}`, nil), "<b>", "<script>"); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for name, source := range map[string]string{"style": style, "script": script} {
		if !strings.Contains(text, "<"+name+">"+source+"</"+name+">") {
			t.Errorf("the %s is not on the page as it is", name)
		}
		if !strings.Contains(html.UnescapeString(text), name+"-src '"+sourceHash(source)+"'") {
			t.Errorf("the page's policy does not name its %s", name)
		}
	}
	if strings.Count(text, "<script>") != 1 || strings.Contains(text, "<b>") {
		t.Error("what was handed in is more than text")
	}
}
