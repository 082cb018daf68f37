package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificate tells until when a replica's serving certificate is valid. Every replica exports its own: in a rotation that goes
// wrong they differ.
type certificate struct {
	notAfter func() (time.Time, bool)
	expiry   *prometheus.Desc
}

func newCertificate(notAfter func() (time.Time, bool)) *certificate {
	return &certificate{notAfter: notAfter, expiry: prometheus.NewDesc("vmwarden_webhook_certificate_expiry_timestamp_seconds",
		"When the certificate that this replica serves ends to be valid.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (c *certificate) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.expiry }

// Collect implements prometheus.Collector.
func (c *certificate) Collect(metrics chan<- prometheus.Metric) {
	if at, known := c.notAfter(); known {
		metrics <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, seconds(at))
	}
}

// seconds is a moment as Prometheus tells it.
func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
