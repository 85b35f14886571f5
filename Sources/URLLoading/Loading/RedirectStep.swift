import Foundation
import HTTPSemantics
import HTTPTypes

/// What to do with a response that may be a redirect.
enum RedirectStep {
    /// The response is no redirect.
    case none
    /// The request's URL may be none of HTTP.
    case follow(URLRequest, keepsContent: Bool)
    case refuse(URLError.Code, String)

    /// - Parameters:
    ///   - request: the request that was answered.
    ///   - url: its URL.
    ///   - count: number of redirects followed before.
    init(_ response: HTTPURLResponse, fields: HTTPFields, of request: URLRequest, at url: URL, count: Int) {
        switch RedirectLocation(status: response.statusCode, fields: fields) {
        case .none: self = .none
        case .malformed: self = .refuse(.redirectToNonExistentLocation, "The redirect has no valid Location.")
        case .reference(let reference):
            let text = RedirectLocation.inheritingFragment(reference, from: url.fragment(percentEncoded: true))
            guard let target = URL(string: text, relativeTo: url)?.absoluteURL, let from = Origin(url),
                let origin = Self.origin(of: target)
            else {
                self = .refuse(.redirectToNonExistentLocation, Self.noHost)
                return
            }
            self = Self.step(response.statusCode, request, to: target, from, origin, count)
        }
    }

    private static let noHost = "The redirect's Location has no scheme or no host."

    /// A URL of another scheme, such as `myapp:callback`, needs no host. The delegate decides on it first.
    private static func origin(of target: URL) -> Origin? {
        if let origin = Origin(target) { return origin }
        guard let scheme = target.scheme else { return nil }
        let origin = Origin(scheme: scheme, host: "")
        return origin.isHTTP ? nil : origin
    }

    private static func step(
        _ status: Int, _ request: URLRequest, to target: URL, _ from: Origin, _ origin: Origin, _ count: Int
    ) -> RedirectStep {
        let method = HTTPRequest.Method(request.httpMethod ?? "GET") ?? .get
        let fields = HTTPFields(request.allHTTPHeaderFields)
        switch RedirectPolicy.decide(
            status: status, method: method, fields: fields, from: from, to: origin, count: count)
        {
        case .refuse(.tooMany): return .refuse(.httpTooManyRedirects, "too many HTTP redirects")
        case .refuse(.noHost): return .refuse(.redirectToNonExistentLocation, Self.noHost)
        case .follow(let redirected):
            var next = request
            next.url = target
            next.httpMethod = redirected.method.rawValue
            next.allHTTPHeaderFields = redirected.fields.values
            if !redirected.keepsContent {
                next.httpBody = nil
                next.httpBodyStream = nil
            }
            return .follow(next, keepsContent: redirected.keepsContent)
        }
    }
}
