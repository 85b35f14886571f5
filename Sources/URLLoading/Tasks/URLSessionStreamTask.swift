import Foundation

/// A byte stream over TCP: reads and writes that queue.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {}
