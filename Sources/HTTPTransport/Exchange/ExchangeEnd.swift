/// How an exchange ended. Told once, last.
package enum ExchangeEnd: Sendable {
    /// The whole response has come. `trailers` are the fields behind a chunked content, mostly none.
    case finished(trailers: [HeaderField])
    /// The server switched protocols (101): the connection is the consumer's, who must close it.
    case upgraded(UpgradedConnection)
    case failed(ExchangeFailure)
}
