import Foundation

/// Loads what a URL stands for into memory, or message by message to a delegate.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
    var transfer: Transfer? { self.driver as? Transfer }
}
