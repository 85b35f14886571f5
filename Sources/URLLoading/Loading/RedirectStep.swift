import Foundation
import HTTPSemantics
import HTTPTypes

/// What to do with a response that may be a redirect.
enum RedirectStep {
    /// The response is no redirect.
    case none
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
                let origin = Origin(target)
            else {
                self = .refuse(.redirectToNonExistentLocation, "The redirect's Location has no scheme or no host.")
                return
            }
            self = Self.step(response.statusCode, request, to: target, from, origin, count)
        }
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
        case .refuse(.scheme): return .refuse(.unsupportedURL, "The redirect leads to a URL that is not HTTP.")
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
