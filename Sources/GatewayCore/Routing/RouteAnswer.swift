/// What a route table says to a request.
package enum RouteAnswer: Hashable, Sendable {
    case route(RouteMatch)
    /// 404.
    case none
    /// 400: no request target of RFC 9112 §3.2 with a path, a percent sign without two digits, or bytes that are not
    /// UTF-8.
    case malformed
}
