import Foundation

/// Where the content of a response goes.
enum ContentSink {
    case none
    /// To the delegate, through the window.
    case delegate
    /// Into memory, whole.
    case memory(Data)
    case file(DownloadSink)
    case channel(ByteChannel)

    /// Calls `done`, on any thread, when nothing waits to be written any more.
    func finish(_ done: @escaping @Sendable (SinkFailure?) -> Void) {
        switch self {
        case .file(let file): file.finish(done)
        case .none, .delegate, .memory, .channel: done(nil)
        }
    }
}
