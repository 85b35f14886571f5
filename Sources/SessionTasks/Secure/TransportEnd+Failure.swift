import StreamTransport

extension TransportEnd {
    /// What failed; `nil` when we ended it ourselves.
    package var transportFailure: TransportFailure? {
        if case .failed(let failure) = self { failure } else { nil }
    }
}
