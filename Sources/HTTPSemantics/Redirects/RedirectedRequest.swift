import HTTPTypes

/// What is left of a request when it goes on to where it was redirected.
package struct RedirectedRequest: Equatable, Sendable {
    package let method: HTTPRequest.Method
    /// Without those that may not go along. Cookies and the host are put in anew for the target.
    package let fields: HTTPFields
    /// Whether the content goes along: a stream must then be asked for again.
    package let keepsContent: Bool
}
