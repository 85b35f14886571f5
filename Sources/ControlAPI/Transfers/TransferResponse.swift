/// The head of a response.
package struct TransferResponse: Codable, Sendable, Equatable {
    package var status: Int
    /// Values of Set-Cookie are hidden.
    package var headers: [Header]
    /// As Content-Type says it.
    package var mediaType: String?

    package init(
        status: Int, headers: [Header], mediaType: String? = nil
    ) {
        self.status = status
        self.headers = headers
        self.mediaType = mediaType
    }
}
