// HttpGateway
