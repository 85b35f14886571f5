import Foundation

/// An error as its parts.
struct FailureReport: Encodable, Sendable {
    let domain: String
    let code: Int
    let text: String
    let failingURL: String?
    let failingURLText: String?
    /// Domain and code of the underlying error.
    let cause: String?

    init(_ error: any Error) {
        let error = error as NSError
        self.domain = error.domain
        self.code = error.code
        self.text = error.localizedDescription
        self.failingURL = (error.userInfo[NSURLErrorFailingURLErrorKey] as? URL)?.absoluteString
        self.failingURLText = error.userInfo["NSErrorFailingURLStringKey"] as? String
        let cause = error.userInfo[NSUnderlyingErrorKey] as? any Error
        self.cause = cause.map { "\(($0 as NSError).domain) \(($0 as NSError).code): \($0)" }
    }
}
