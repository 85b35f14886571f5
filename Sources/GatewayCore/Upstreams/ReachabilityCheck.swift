import StreamTransport

/// One connection attempt, closed again at once.
package enum ReachabilityCheck {
    /// Why `url` cannot be connected to; `nil` if it can.
    package static func reason(_ url: EndpointURL, on loop: Loop, timeout: Duration) async -> String? {
        await withCheckedContinuation { continuation in
            loop.execute {
                _ = ConnectAttempt(url.connectTarget, on: loop, timeout: timeout) { result in
                    switch result {
                    case .success(let connection):
                        connection.close(linger: .zero)
                        continuation.resume(returning: nil)
                    case .failure(let failure):
                        continuation.resume(returning: failure.description)
                    }
                }
            }
        }
    }
}
