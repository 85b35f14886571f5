extension UpstreamEndpoint {
    init(reading node: DocumentNode, at path: ConfigurationKeyPath, problems: ProblemCollector) {
        problems.survey?.value(ValueSyntax<EndpointURL>.endpointURL.form, at: path)
        guard case .scalar(let text) = node.content else {
            let section = SectionReader<EndpointKey>(node, at: path, problems: problems)
            self.init(url: section.required(.url, as: .endpointURL) ?? .placeholder)
            section.read(.weight, into: &self.weight, as: .integer(1...1000))
            return
        }
        do throws(TextFault) {
            self.init(url: try EndpointURL(text))
        } catch {
            problems.add(at: path, expected: error.expected, remedy: error.remedy)
            self.init(url: .placeholder)
        }
    }
}

extension EndpointURL {
    /// Stands where a URL could not be read; the document is refused anyway.
    static let placeholder = EndpointURL(scheme: .tcp, location: .address(.loopback, port: 1))
}
