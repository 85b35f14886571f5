import Foundation
import HTTPSemantics
import HTTPTypes

/// Where a redirect leads to: the request that would follow it.
enum RedirectStep {
    /// The response is the result: it redirects nothing.
    case none
    case follow(URLRequest, keepsContent: Bool)
    case refuse(URLError.Code, String)

    /// - Parameters:
    ///   - request: that was answered, as the program made it or a redirect before.
    ///   - url: of that request.
    ///   - count: redirects that were followed before.
    init(_ response: HTTPURLResponse, fields: HTTPFields, of request: URLRequest, at url: URL, count: Int) {
        switch RedirectLocation(status: response.statusCode, fields: fields) {
        case .none: self = .none
        case .malformed: self = .refuse(.redirectToNonExistentLocation, "The redirect names no single place.")
        case .reference(let reference):
            let text = RedirectLocation.inheritingFragment(reference, from: url.fragment(percentEncoded: true))
            guard let target = URL(string: text, relativeTo: url)?.absoluteURL, let from = Origin(url),
                let origin = Origin(target)
            else {
                self = .refuse(.redirectToNonExistentLocation, "The redirect leads to no place that can be loaded.")
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
        case .refuse(.scheme): return .refuse(.unsupportedURL, "The redirect leads out of HTTP.")
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
