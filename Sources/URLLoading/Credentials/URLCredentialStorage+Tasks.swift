import Foundation

/// For a task the same is kept as without one.
extension URLCredentialStorage {
    /// - Parameter completionHandler: takes the credentials by their users, or `nil` where there are none; at once.
    public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        completionHandler(self.credentials(for: protectionSpace))
    }

    /// As `getCredentials(for:task:completionHandler:)`.
    public func credentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) async -> [String: URLCredential]? {
        self.credentials(for: protectionSpace)
    }

    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        self.set(credential, for: protectionSpace)
    }

    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:],
        task: URLSessionTask
    ) {
        self.remove(credential, for: protectionSpace, options: options)
    }

    /// - Parameter completionHandler: takes what is tried first in this space, or `nil`; at once.
    public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        completionHandler(self.defaultCredential(for: space))
    }

    /// As `getDefaultCredential(for:task:completionHandler:)`.
    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        self.defaultCredential(for: space)
    }

    public func setDefaultCredential(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) {
        self.setDefaultCredential(credential, for: protectionSpace)
    }
}
