package reap

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Document is a plan or a report for programs. Its field names are API.
type Document struct {
	Environment string `json:"environment"`
	// StartedAt, DurationSeconds, ExitStatus and Summary are a report's alone.
	StartedAt       *time.Time                  `json:"startedAt,omitempty"`
	DurationSeconds *float64                    `json:"durationSeconds,omitempty"`
	ExitStatus      *int                        `json:"exitStatus,omitempty"`
	Summary         map[Direction]DocumentCount `json:"summary,omitempty"`
	Items           []DocumentItem              `json:"items"`
	Holds           []DocumentHold              `json:"holds"`
	Notices         []DocumentNotice            `json:"notices"`
}

// DocumentCount counts a direction's items by result.
type DocumentCount struct {
	Done   int `json:"done"`
	Kept   int `json:"kept"`
	Failed int `json:"failed"`
}

// DocumentItem is an action, and in a report its result.
type DocumentItem struct {
	Direction Direction `json:"direction"`
	Session   string    `json:"session"`
	Objects   []string  `json:"objects"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
	Result    Result    `json:"result,omitempty"`
	Detail    string    `json:"detail,omitempty"`
}

// DocumentHold is a direction that was not gone in.
type DocumentHold struct {
	Direction Direction `json:"direction"`
	Cause     HoldCause `json:"cause"`
	Reason    string    `json:"reason"`
}

// DocumentNotice is something kept that a person should know of.
type DocumentNotice struct {
	Direction Direction `json:"direction"`
	What      string    `json:"what"`
	Reason    string    `json:"reason"`
}

// Document gives the plan for programs.
func (p Plan) Document(environment string) Document {
	d := newDocument(environment, p.Holds, p.Notices)
	for _, action := range p.Actions {
		d.Items = append(d.Items, newDocumentItem(action))
	}
	return d
}

// Document gives the report for programs.
func (r Report) Document() Document {
	d := newDocument(r.Environment, r.Holds, r.Notices)
	d.StartedAt, d.DurationSeconds, d.ExitStatus = new(r.StartedAt.UTC()), new(r.Duration.Seconds()), new(r.ExitStatus())
	d.Summary = map[Direction]DocumentCount{}
	for _, direction := range Directions() {
		d.Summary[direction] = DocumentCount{Done: r.count(direction, Done), Kept: r.count(direction, Kept), Failed: r.count(direction, Failed)}
	}
	for _, item := range r.Items {
		entry := newDocumentItem(item.Action)
		entry.Result, entry.Detail = item.Result, item.Detail
		d.Items = append(d.Items, entry)
	}
	return d
}

func newDocument(environment string, holds []Hold, notices []Notice) Document {
	d := Document{Environment: environment, Items: []DocumentItem{}, Holds: []DocumentHold{}, Notices: []DocumentNotice{}}
	for _, hold := range holds {
		d.Holds = append(d.Holds, DocumentHold(hold))
	}
	for _, notice := range notices {
		d.Notices = append(d.Notices, DocumentNotice(notice))
	}
	return d
}

func newDocumentItem(action Action) DocumentItem {
	item := DocumentItem{Direction: action.Direction, Session: action.Session, Objects: []string{}, Reason: action.Reason, Since: action.Since.UTC()}
	for _, object := range action.Objects {
		item.Objects = append(item.Objects, object.Namespace+"/"+object.String())
	}
	return item
}

// WriteJSON writes the document as indented JSON.
func (d Document) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
