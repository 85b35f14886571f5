import URLLoading

/// The content of an answer, read as it comes. For one reader; whoever lets it go before its end ends the request.
package final class ControlBody: Sendable {
    private let reader: ByteReader
    private let address: ControlAddress

    init(_ bytes: URLSession.AsyncBytes, at address: ControlAddress) {
        self.reader = bytes.makeByteReader()
        self.address = address
    }

    /// The next bytes, at least one; `nil` at the end.
    package func next() async throws(ControlFailure) -> [UInt8]? {
        do {
            return try await self.reader.nextRun()
        } catch {
            throw ControlFailure(error, at: self.address)
        }
    }
}
