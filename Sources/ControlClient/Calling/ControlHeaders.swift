import Foundation
import URLLoading

/// Header fields by name, whatever their case.
package struct ControlHeaders: Sendable, Equatable {
    private var values: [String: String] = [:]

    package init(_ fields: [String: String] = [:]) {
        for (name, value) in fields { self.values[name.lowercased()] = value }
    }

    init(_ response: HTTPURLResponse) {
        for (name, value) in response.allHeaderFields { self.values["\(name)".lowercased()] = "\(value)" }
    }

    package subscript(name: String) -> String? { self.values[name.lowercased()] }

    /// Without its parameters, in small letters.
    package var mediaType: String? {
        self["Content-Type"]?.split(separator: ";").first?.trimmingCharacters(in: .whitespaces).lowercased()
    }

    /// Whether the content is JSON, be it a problem document.
    package var isJSON: Bool { self.mediaType == "application/json" || self.mediaType?.hasSuffix("+json") == true }
}
