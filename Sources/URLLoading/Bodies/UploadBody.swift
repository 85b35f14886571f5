import HTTPTransport

/// A body on its way to a server, as the task sees it beside the exchange that pulls it.
package protocol UploadBody: BodySource {
    /// Bytes given since the beginning, or since it began again. From any thread.
    var bytesGiven: Int64 { get }

    /// Why `read` answered `.failed`. From any thread.
    var failure: (any Error)? { get }

    /// Calls `work`, on whatever thread, each time that something is there after `read` answered `.later`:
    /// `Exchange.bodyAvailable` is to follow. Replaces what was set before; set it before the exchange starts.
    func whenAvailable(_ work: @escaping @Sendable () -> Void)

    /// Nothing more is wanted. What the body came from is closed as soon as nobody reads it; `read` answers `.failed`.
    func close()
}
