/// TLS that is being started on a stream task's connection.
struct SecuringStep {
    let number: UInt64
    let completion: (Result<Void, TaskFailure>) -> Void
    /// `nil` until the handshake has begun.
    var transport: SecureTransport?
}
