"""What components tell over HTTP: health, readiness and metrics; the controller a status page as well."""
