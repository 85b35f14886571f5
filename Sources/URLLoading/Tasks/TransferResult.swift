import Foundation

/// Who gets what a transfer brings.
enum TransferResult: Sendable {
    /// The delegate, message by message.
    case delegate
    /// A completion handler of a data or upload task.
    case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// A completion handler of a download task.
    case file(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// Who awaits a download: the file stays.
    case lastingFile(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// Who awaits the data: told on the loop, without the delegate queue between, unless a delegate is told the content.
    case awaitedData(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    /// Who reads byte by byte: the response when it is there, then the content.
    case bytes(ByteChannel, @Sendable (Result<URLResponse, any Error>) -> Void)

    var isDelegate: Bool {
        if case .delegate = self { true } else { false }
    }
}
