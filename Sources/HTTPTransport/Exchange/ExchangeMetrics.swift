/// What an exchange took. Of a request that was repeated, only the second try.
package struct ExchangeMetrics: Sendable, Hashable {
    /// When the exchange was ordered.
    package var fetchStart: ContinuousClock.Instant
    package var connection: ConnectionFacts?
    /// The steps of opening, as far as they came; also if that failed.
    package var timings = ConnectTimings()
    package var requestStart: ContinuousClock.Instant?
    package var requestEnd: ContinuousClock.Instant?
    /// First and last byte of the response.
    package var responseStart: ContinuousClock.Instant?
    package var responseEnd: ContinuousClock.Instant?

    /// Bytes on the wire, above TLS.
    package var requestHeadBytes: Int64 = 0
    /// Of the body, with the framing of its chunks.
    package var requestBodyBytes: Int64 = 0
    /// Of the body, without framing.
    package var requestContentBytes: Int64 = 0
    /// Of all heads, the informational ones included.
    package var responseHeadBytes: Int64 = 0
    /// Of the content, with the framing of its chunks and the trailers.
    package var responseBodyBytes: Int64 = 0
    /// Of the content, without framing; its content coding is untouched.
    package var responseContentBytes: Int64 = 0

    package init(fetchStart: ContinuousClock.Instant) {
        self.fetchStart = fetchStart
    }
}
